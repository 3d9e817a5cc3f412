// Tests on the host how the wgmma kernels of the GEMM divide their tiles among thread blocks
// (TileScheduler), and the Divider that they use for this.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/gemm/wgmma/sm90_launch.h"

namespace convoy::kernels::gemm {
namespace {

TEST(Divider, Divides) {
  constexpr std::uint32_t kEnd = 1U << 31;
  std::mt19937 random(1);
  std::vector<std::uint32_t> interesting{1,    2,     3,     7,        64,       127,     128,
                                         1000, 65535, 65537, kEnd / 2, kEnd - 2, kEnd - 1};
  for (int i = 0; i < 50; ++i) interesting.push_back((random() & (kEnd - 1)) >> random() % 31 | 1);
  for (const std::uint32_t divisor : interesting) {
    const cuda::Divider divide(divisor);
    for (const std::uint32_t number : interesting)
      for (const std::uint64_t near :
           {std::uint64_t{number} - 1, std::uint64_t{number}, std::uint64_t{number} / divisor * divisor,
            std::uint64_t{number} * divisor - 1, std::uint64_t{number} * divisor})
        if (near < kEnd) {
          ASSERT_EQ(divide(std::uint32_t(near)), near / divisor) << near << " by " << divisor;
        }
  }
}

// The work items must cover every tile and block of k exactly once, one band (several rows of
// tiles) after the other.
TEST(Sm90Schedule, DealsOutEverythingOnce) {
  for (const int m_tiles : {1, 3, 16, 17, 48, 100})
    for (const int n_tiles : {1, 2, 5})
      for (const int k_blocks : {1, 4, 36})
        for (const int splits : {1, 2, 3, 7}) {
          if (splits > k_blocks) continue;
          for (const int band : {8, 16}) {
            const TileScheduler schedule(m_tiles, n_tiles, k_blocks, splits, band);
            ASSERT_EQ(schedule.work_items(), m_tiles * n_tiles * splits);
            std::vector<int> times(std::size_t(m_tiles * n_tiles * k_blocks));
            int former_band = 0, former_split = 0;
            for (int index = 0; index < schedule.work_items(); ++index) {
              const TileScheduler::WorkItem item = schedule.at(index);
              ASSERT_TRUE(item.m_tile >= 0 && item.m_tile < m_tiles && item.n_tile >= 0 &&
                          item.n_tile < n_tiles && item.k_begin < item.k_end && item.k_end <= k_blocks);
              ASSERT_LE(item.k_end - item.k_begin, (k_blocks + splits - 1) / splits);
              ASSERT_GE(item.split, former_split);
              if (item.split > former_split) former_band = 0;
              ASSERT_GE(item.m_tile / band, former_band);
              former_band = item.m_tile / band, former_split = item.split;
              for (int k = item.k_begin; k < item.k_end; ++k)
                ++times[std::size_t((item.m_tile * n_tiles + item.n_tile) * k_blocks + k)];
            }
            for (const int count : times) ASSERT_EQ(count, 1);
          }
        }
  EXPECT_EQ(TileScheduler(0, 4, 1, 1, 16).work_items(), 0);
}

}  // namespace
}  // namespace convoy::kernels::gemm
