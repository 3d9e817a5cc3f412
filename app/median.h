// Medians of measured values.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace convoy::app {

// Returns the upper one of an even number of values. `values` must not be empty, here and below.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the lower one of an even number of values.
inline double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace convoy::app
