#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "comm/scatter_feed.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::world;

std::byte pixel(int step, std::int64_t sample, std::int64_t index) {
  return static_cast<std::byte>((step * 101 + sample * 13 + index * 7) % 251);
}

// Batches of different sizes, among them one that leaves ranks without a sample, each while the one before is
// in use.
TEST(ScatterFeed, GivesEveryRankItsSamplesWhileItComputes) {
  const int ranks = world().size(), rank = world().rank();
  for (const std::int64_t sample_bytes : {std::int64_t{1}, std::int64_t{3072}}) {
    const int root = ranks - 1;
    ScatterFeed feed(world(), sample_bytes, "images", root);
    const auto counts_of = [&](int step) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks));
      for (int r = 0; r < ranks; ++r)
        counts[static_cast<std::size_t>(r)] = step == 2 ? (r == 1) : 5 + r * step;
      return counts;
    };
    std::vector<std::byte> batches[2], parts[2];
    const auto start = [&](int step) {
      const auto counts = counts_of(step);
      auto& batch = batches[step % 2];
      batch.clear();
      const std::int64_t samples = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      for (std::int64_t sample = 0; rank == root && sample < samples; ++sample)
        for (std::int64_t i = 0; i < sample_bytes; ++i) batch.push_back(pixel(step, sample, i));
      auto& part = parts[step % 2];
      part.assign(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)] * sample_bytes),
                  std::byte{0});
      // Only the root knows the counts.
      feed.start(batch,
                 rank == root ? std::span<const std::int64_t>(counts) : std::span<const std::int64_t>(),
                 part);
    };
    start(0);
    for (int step = 0; step < 5; ++step) {
      EXPECT_GE(feed.wait(), 0);
      if (step < 4) start(step + 1);
      feed.progress();
      const auto counts = counts_of(step);
      const std::int64_t first = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
      const auto& part = parts[step % 2];
      for (std::size_t i = 0; i < part.size(); ++i)
        ASSERT_EQ(part[i], pixel(step, first + static_cast<std::int64_t>(i) / sample_bytes,
                                 static_cast<std::int64_t>(i) % sample_bytes))
            << "step " << step << ", byte " << i;
    }
  }
}

TEST(ScatterFeed, RefusesWrongBatches) {
  ScatterFeed feed(world(), 10, "images");
  EXPECT_THROW(ScatterFeed(world(), 0, "images"), std::invalid_argument);
  EXPECT_THROW(ScatterFeed(world(), 10, "images", world().size()), std::invalid_argument);
  std::vector<std::byte> odd(15), mine(20), batch(20 * static_cast<std::size_t>(world().size()));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(world().size()), 2);
  if (world().rank() == 0) {
    EXPECT_THROW(feed.start(batch, std::span(counts).first(counts.size() - 1), mine), std::invalid_argument);
    EXPECT_THROW(feed.start(batch, counts, odd), std::invalid_argument);
    counts[0] = 3;
    EXPECT_THROW(feed.start(batch, counts, mine), std::invalid_argument);
    counts[0] = 2;
  } else {
    EXPECT_THROW(feed.start({}, {}, odd), std::invalid_argument);
  }
  feed.start(batch, counts, mine);
  EXPECT_THROW(feed.start(batch, counts, mine), std::logic_error);
  feed.wait();
  EXPECT_EQ(feed.wait(), 0) << "nothing is under way";
}

}  // namespace
}  // namespace convoy::comm
