// The middle of measured values.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace convoy::app {

// Of an even number of values the upper one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace convoy::app
