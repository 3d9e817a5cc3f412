// Normally distributed values, whose sums depend on the order of adding.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace convoy::test {

// Returns the values of `rank`, the same on every rank that asks.
inline std::vector<float> normal_values(int rank, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed * 1009 + static_cast<unsigned>(rank));
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(random);
  return values;
}

// Returns the sum of the values of the first `ranks` ranks, added in rank order.
inline std::vector<float> sum_of_normal_values(int ranks, std::int64_t count, unsigned seed) {
  std::vector<float> sum = normal_values(0, count, seed);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> more = normal_values(rank, count, seed);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

}  // namespace convoy::test
