// Sums by the copy engines among all ranks of a host, which may share GPUs here: NCCL, which refuses that, is not asked.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "comm/nccl/copy_all_reduce.h"
#include "kernels/device/device_memory.h"
#include "tests/comm/same_bits.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::world;

std::vector<float> values_of(int rank, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed * 1009 + static_cast<unsigned>(rank));
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(random);
  return values;
}

std::vector<float> sum_in_rank_order(std::int64_t count, unsigned seed) {
  std::vector<float> sum = values_of(0, count, seed);
  for (int rank = 1; rank < world().size(); ++rank) {
    const std::vector<float> more = values_of(rank, count, seed);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

// Counts below the number of ranks, shares that are no whole vectors, a sum in several pieces (more than a window's scratch
// memory), and a place in the middle of the window; step after step of one captured graph, as flags must come back to zero.
TEST(CopyAllReduce, GivesTheSumInRankOrder) {
  std::int32_t gpus = 0;
  try {
    gpus = kernels::gpu_count();
  } catch (const std::runtime_error&) {  // no driver
  }
  if (world().all_reduce(gpus, ReduceOp::min, "devices") == 0) GTEST_SKIP() << "needs a GPU";
  if (!PeerWindow::possible(world())) GTEST_SKIP() << "needs 2 to " << PeerWindow::kMostRanks << " ranks";
  kernels::use_gpu(world().local_rank() % gpus);
  constexpr std::size_t kBytes = std::size_t{40} << 20;
  const std::shared_ptr<PeerWindow> window = PeerWindow::create(world(), kBytes);
  if (window == nullptr && gpus > 1)
    GTEST_SKIP() << "GPUs that do not address each other's memory over NVLink";
  ASSERT_NE(window, nullptr);
  constexpr std::size_t kOffset = 16 * 77;
  unsigned seed = 0;
  for (const std::int64_t count :
       {std::int64_t{1}, std::int64_t{5}, std::int64_t{100'003}, std::int64_t{9'400'003}}) {
    const CopyAllReduce sum(window, kOffset, count);
    const auto graph = kernels::CapturedGraph::capture(
        [&](kernels::Stream stream) { sum.run(static_cast<cudaStream_t>(stream)); });
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> mine = values_of(world().rank(), count, ++seed);
      std::byte* data = window->data(world().rank()) + kOffset;
      const std::size_t bytes = mine.size() * sizeof(float);
      kernels::copy_in(kernels::Backend::cuda, data, mine.data(), bytes);
      graph.launch(nullptr);
      std::vector<float> found(mine.size());
      kernels::copy_out(kernels::Backend::cuda, found.data(), data, bytes);
      ASSERT_TRUE(same_bits(found, sum_in_rank_order(count, seed))) << count << " values, step " << step;
    }
  }
}

}  // namespace
}  // namespace convoy::comm
