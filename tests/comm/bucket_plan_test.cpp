#include "comm/bucket_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

namespace convoy::comm {
namespace {

std::vector<BucketSegment> packed(const std::vector<std::int64_t>& counts, std::int64_t padding = 0) {
  std::vector<BucketSegment> segments;
  std::int64_t offset = 0;
  for (const std::int64_t count : counts) {
    segments.push_back({offset, count});
    offset += count + padding;
  }
  return segments;
}

TEST(BucketPlan, CoversEveryElementOnceAndWaitsForItsSegments) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::int64_t> counts(1 + random() % 40);
    for (auto& count : counts) count = static_cast<std::int64_t>(random() % (trial % 3 == 0 ? 5000 : 300));
    const auto segments = packed(counts, trial % 4);
    const auto bytes_up_to = [&](unsigned long most) {
      return static_cast<std::int64_t>(4 * (1 + random() % most));
    };
    const BucketSizes sizes{bytes_up_to(1500), bytes_up_to(400)};
    const auto buckets = plan_buckets(segments, 4, sizes);
    std::vector<int> covered(static_cast<std::size_t>(segments.back().offset + segments.back().count));
    std::int64_t end = 0;
    for (const Bucket& bucket : buckets) {
      EXPECT_GE(bucket.offset, end) << "buckets in the order of the buffer";
      end = bucket.offset + bucket.count;
      EXPECT_GT(bucket.count, 0);
      EXPECT_LE(bucket.count * 4, std::max(sizes.bytes, sizes.edge_bytes));
      for (std::int64_t i = bucket.offset; i < end; ++i) ++covered[static_cast<std::size_t>(i)];
      // A bucket is sent when its segments (the gradients of its parameters) are finished. So it
      // must not reach beyond these segments, where gradients may be unfinished.
      const auto& first = segments[static_cast<std::size_t>(bucket.first_segment)];
      const auto& last = segments[static_cast<std::size_t>(bucket.last_segment)];
      EXPECT_GE(bucket.offset, first.offset);
      EXPECT_LE(end, last.offset + last.count);
    }
    for (const auto& [offset, count] : segments)
      for (std::int64_t i = offset; i < offset + count; ++i)
        ASSERT_EQ(covered[static_cast<std::size_t>(i)], 1) << "element " << i << ", trial " << trial;
  }
}

TEST(BucketPlan, IsSmallAtBothEnds) {
  const auto buckets =
      plan_buckets(packed(std::vector<std::int64_t>(100, 10)), 4, {.bytes = 800, .edge_bytes = 120});
  EXPECT_EQ(buckets.front().count, 30);
  EXPECT_EQ(buckets.back().count, 30);
  EXPECT_EQ(buckets[1].count, 200);
  EXPECT_EQ(buckets.size(), 2u + 5u);
}

TEST(BucketPlan, CutsALongSegment) {
  const auto buckets = plan_buckets(packed({5, 1000, 5}), 4, {.bytes = 1600, .edge_bytes = 40});
  ASSERT_EQ(buckets.size(), 5u);
  for (int part = 1; part <= 3; ++part) {
    const Bucket& bucket = buckets[static_cast<std::size_t>(part)];
    EXPECT_EQ(bucket.first_segment, 1);
    EXPECT_EQ(bucket.last_segment, 1);
    EXPECT_EQ((bucket.offset - 5) % 64, 0);
    EXPECT_NEAR(static_cast<double>(bucket.count), 1000.0 / 3, 3 * 64);
  }
}

TEST(BucketPlan, RefusesSegmentsOutOfOrder) {
  const std::vector<BucketSegment> overlapping{{0, 10}, {5, 10}}, backwards{{10, 10}, {0, 10}},
      negative{{0, -1}};
  EXPECT_THROW(plan_buckets(overlapping, 4), std::invalid_argument);
  EXPECT_THROW(plan_buckets(backwards, 4), std::invalid_argument);
  EXPECT_THROW(plan_buckets(negative, 4), std::invalid_argument);
  EXPECT_THROW(plan_buckets(packed({1}), 4, {.bytes = 0, .edge_bytes = 4}), std::invalid_argument);
  EXPECT_TRUE(plan_buckets({}, 4).empty());
  EXPECT_TRUE(plan_buckets(packed({0, 0}), 4).empty());
}

}  // namespace
}  // namespace convoy::comm
