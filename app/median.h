// Computes medians of measured values.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace convoy::app {

// Returns the median, or the upper of the two middle values if their number is even. `values` must
// not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the median, or the lower of the two middle values if their number is even. `values` must
// not be empty.
inline double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace convoy::app
