#include "app/sharing/service/latencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace convoy::app {
namespace {

using Duration = Latencies::Duration;

TEST(Latencies, PercentilesAreThoseOfAllValues) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(15, 3);  // in nanoseconds; the median is about 3 ms
  Latencies latencies;
  std::vector<std::int64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(static_cast<std::int64_t>(draw(random)));
    latencies.add(Duration(all.back()));
  }
  std::ranges::sort(all);
  EXPECT_EQ(latencies.count(), 20'000);
  EXPECT_EQ(latencies.max().count(), all.back());
  EXPECT_EQ(latencies.percentile(1).count(), all.back());
  for (const double share : {1e-9, 0.01, 0.5, 0.95, 0.99, 0.9999}) {
    const auto rank = std::max<std::size_t>(static_cast<std::size_t>(std::ceil(share * 20'000)), 1);
    const auto exact = static_cast<double>(all[rank - 1]);
    const auto found = static_cast<double>(latencies.percentile(share).count());
    EXPECT_GE(found, exact) << share;
    EXPECT_LE(found, exact * (1 + 1.0 / 64)) << share;
  }
}

TEST(Latencies, SmallAndHugeValuesHaveABucket) {
  Latencies latencies;
  EXPECT_EQ(latencies.percentile(0.5).count(), 0);
  for (const std::int64_t value : {-5, 0, 1, 127, 128, 129}) latencies.add(Duration(value));
  EXPECT_EQ(latencies.percentile(3.0 / 6).count(), 1);
  EXPECT_EQ(latencies.percentile(4.0 / 6).count(), 127);
  EXPECT_EQ(latencies.percentile(5.0 / 6).count(), 129);  // 128 and 129 share a bucket
  latencies.add(Duration::max());
  EXPECT_EQ(latencies.percentile(1), Duration::max());
  EXPECT_EQ(latencies.percentile(0.01).count(), 0);
}

TEST(Latencies, ThoseAboveTheGoalAreCounted) {
  Latencies latencies(Duration(1000));
  for (const std::int64_t value : {999, 1000, 1001, 5000}) latencies.add(Duration(value));
  EXPECT_EQ(latencies.over_goal(), 2);
  Latencies none;
  none.add(Duration(1));
  EXPECT_EQ(none.over_goal(), 0);
}

}  // namespace
}  // namespace convoy::app
