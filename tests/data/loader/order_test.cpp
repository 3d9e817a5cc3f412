#include "data/loader/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace convoy::data {
namespace {

TEST(Permutation, HoldsEveryValueOnce) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1023, 1024, 1025, 50000}) {
    const Permutation permutation(size, 42, 3);
    std::vector<char> seen(static_cast<std::size_t>(size), 0);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t value = permutation[i];
      ASSERT_GE(value, 0);
      ASSERT_LT(value, size);
      ASSERT_EQ(seen[static_cast<std::size_t>(value)]++, 0) << size;
    }
  }
}

TEST(Permutation, FollowsFromSeedAndEpoch) {
  const std::int64_t size = 1000;
  const auto equal = [&](const Permutation& a, const Permutation& b) {
    std::int64_t same = 0;
    for (std::int64_t i = 0; i < size; ++i) same += a[i] == b[i];
    return same;
  };
  EXPECT_EQ(equal(Permutation(size, 1, 0), Permutation(size, 1, 0)), size);
  // Two random permutations have about one value in the same place on average.
  EXPECT_LT(equal(Permutation(size, 1, 0), Permutation(size, 1, 1)), 10);
  EXPECT_LT(equal(Permutation(size, 1, 0), Permutation(size, 2, 0)), 10);
}

// Over many epochs, every value must come to every place equally often (chi-square test). Small
// sizes would show it first if the Feistel network had too few rounds or weak keys.
TEST(Permutation, EveryPlaceGetsEveryValue) {
  for (const std::int64_t size : {5, 10, 37}) {
    const int epochs = 20000;
    std::vector<int> count(static_cast<std::size_t>(size * size));
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const Permutation permutation(size, 7, epoch);
      for (std::int64_t i = 0; i < size; ++i) ++count[static_cast<std::size_t>(i * size + permutation[i])];
    }
    const double expected = static_cast<double>(epochs) / static_cast<double>(size);
    double chi_squared = 0;
    for (const int c : count) chi_squared += (c - expected) * (c - expected) / expected;
    const auto freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(std::abs(chi_squared - freedom), 6 * std::sqrt(2 * freedom)) << size;
  }
}

// All 120 orders of five samples must be about equally frequent.
TEST(Permutation, EveryOrderOfAFewOccurs) {
  std::map<std::vector<std::int64_t>, int> count;
  const int epochs = 24000;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(5, 3, epoch);
    std::vector<std::int64_t> order;
    for (int i = 0; i < 5; ++i) order.push_back(permutation[i]);
    ++count[order];
  }
  EXPECT_EQ(count.size(), 120u);
  for (const auto& [order, c] : count) EXPECT_NEAR(c, epochs / 120, 100);
}

// Neighbours in the stored order, which are often of one class, must not stay together.
TEST(Permutation, NeighboursAreSeparated) {
  const std::int64_t size = 50000;
  const Permutation permutation(size, 9, 0);
  double product = 0;
  for (std::int64_t i = 0; i + 1 < size; ++i) {
    product += (static_cast<double>(permutation[i]) / size - 0.5) *
               (static_cast<double>(permutation[i + 1]) / size - 0.5);
  }
  const double correlation = product / size * 12;
  EXPECT_LT(std::abs(correlation), 0.02);
}

TEST(SampleRange, CoverTheBatchInOrder) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (std::int64_t samples = 0; samples <= 30; ++samples) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const SampleRange range = range_of_rank(samples, ranks, rank);
        EXPECT_EQ(range.first, next);
        EXPECT_EQ(range.count, samples / ranks + (rank < samples % ranks ? 1 : 0));
        next += range.count;
      }
      EXPECT_EQ(next, samples);
    }
  }
}

TEST(SampleRange, KeepGroupsWhole) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (std::int64_t samples = 0; samples <= 24; ++samples) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const SampleRange range = range_of_rank(samples, ranks, rank, 2),
                          groups = range_of_rank((samples + 1) / 2, ranks, rank);
        EXPECT_EQ(range.first, next);
        EXPECT_EQ(range.first, std::min(samples, 2 * groups.first));
        EXPECT_EQ((range.count + 1) / 2, groups.count);
        next += range.count;
      }
      EXPECT_EQ(next, samples);
    }
  }
}

}  // namespace
}  // namespace convoy::data
