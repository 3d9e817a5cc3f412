// Computes medians of measured values.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace convoy::app {

// Returns the median. If the number of values is even, returns the larger of the two middle values.
// `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the median. If the number of values is even, returns the smaller of the two middle
// values. `values` must not be empty.
inline double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace convoy::app
