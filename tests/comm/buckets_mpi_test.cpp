// Gradient buckets on host memory against plain collectives and serial sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "comm/buckets.h"
#include "comm/communicator.h"
#include "tests/mpi/world.h"

namespace convoy::comm {
namespace {

using test::world;

// The same on every rank for the same arguments, so that each can compute all ranks' data.
std::vector<float> gradients_of(int rank, std::size_t size, unsigned seed) {
  std::mt19937 random(seed * 1009 + static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> sum_in_order(std::size_t size, unsigned seed) {
  std::vector<float> sum = gradients_of(0, size, seed);
  for (int rank = 1; rank < world().size(); ++rank) {
    const auto theirs = gradients_of(rank, size, seed);
    for (std::size_t i = 0; i < size; ++i) sum[i] += theirs[i];
  }
  return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Layout {
  std::vector<ParameterSegment> segments;
  std::size_t elements = 0;
};

Layout random_layout(std::mt19937& random) {
  Layout layout;
  std::int64_t offset = 0;
  for (std::size_t i = 0, count = 1 + random() % 14; i < count; ++i) {
    const auto length = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 20'000 : random() % 200);
    layout.segments.push_back({offset, length});
    offset += length;
  }
  layout.elements = static_cast<std::size_t>(offset);
  return layout;
}

TEST(GradientBuckets, GiveTheSumInRankOrderWhateverTheSegmentsAndTheOrder) {
  const auto collectives = make_mpi_collectives(world());
  std::mt19937 shared(11);                                        // the same on every rank
  std::mt19937 own(100 + static_cast<unsigned>(world().rank()));  // a different order on every rank
  for (unsigned trial = 0; trial < 6; ++trial) {
    const Layout layout = random_layout(shared);
    std::vector<float> gradients(layout.elements);
    const BucketSizes sizes{4 * (1 + static_cast<std::int64_t>(shared() % 10'000)),
                            4 * (1 + static_cast<std::int64_t>(shared() % 500))};
    GradientBuckets buckets(*collectives, gradients.data(), layout.segments, sizes);
    std::vector<int> order(layout.segments.size());
    std::iota(order.begin(), order.end(), 0);
    for (unsigned step = 0; step < 2; ++step) {
      const auto mine = gradients_of(world().rank(), layout.elements, trial * 2 + step);
      std::shuffle(order.begin(), order.end(), own);
      for (const int segment : order) {
        // Written only now: a bucket sent before its segments are finished would carry the old values.
        const auto& [offset, count] = layout.segments[static_cast<std::size_t>(segment)];
        std::copy_n(mine.begin() + offset, count, gradients.begin() + offset);
        buckets.ready(segment);
        if (segment % 2 == 0) buckets.progress();
      }
      EXPECT_GE(buckets.wait_all(), 0);
      const auto expected = sum_in_order(layout.elements, trial * 2 + step);
      ASSERT_TRUE(same_bits(gradients, expected)) << "trial " << trial << ", step " << step;
      std::vector<float> plain = mine;
      world().all_reduce(std::span<float>(plain), ReduceOp::sum, "oracle");
      for (std::size_t i = 0; i < plain.size(); ++i)
        ASSERT_NEAR(gradients[i], plain[i], 1e-5) << "element " << i;
    }
  }
}

TEST(GradientBuckets, StartInOrderOnly) {
  const auto collectives = make_mpi_collectives(world());
  std::vector<float> gradients(300, 1.0f);
  const std::vector<ParameterSegment> segments{{0, 100}, {100, 100}, {200, 100}};
  GradientBuckets buckets(*collectives, gradients.data(), segments, {.bytes = 400, .edge_bytes = 400});
  ASSERT_EQ(buckets.buckets().size(), 3u);
  EXPECT_THROW(buckets.start(1), std::logic_error);
  EXPECT_THROW(buckets.wait_all(), std::logic_error) << "nothing was started";
  EXPECT_THROW(buckets.ready(3), std::invalid_argument);
  buckets.ready(2);
  EXPECT_THROW(buckets.ready(2), std::logic_error);
  buckets.ready(1);
  buckets.ready(0);
  EXPECT_THROW(buckets.start(3), std::logic_error);
  buckets.wait_all();
  for (int bucket = 0; bucket < 3; ++bucket) buckets.start(bucket);
  buckets.wait_all();
  const float ranks = static_cast<float>(world().size());
  EXPECT_EQ(gradients, std::vector<float>(300, ranks * ranks));
}

}  // namespace
}  // namespace convoy::comm
