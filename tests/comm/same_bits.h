// Compares bits, so that 0 differs from -0 and a NaN equals itself.
#pragma once

#include <algorithm>
#include <span>

namespace convoy::comm {

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

}  // namespace convoy::comm
