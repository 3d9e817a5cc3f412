// Divides a buffer into one share per rank for a sum. Internal to comm.
#pragma once

#include <algorithm>
#include <cstdint>

namespace convoy::comm {

// Returns the first element of a rank's share of `count` elements. The shares begin at multiples of
// 64 elements, so that they are aligned to cache lines.
inline std::int64_t share_begin(std::int64_t count, int rank, int ranks) {
  constexpr std::int64_t kAlignment = 64;
  const std::int64_t lines = (count + kAlignment - 1) / kAlignment;
  return std::min(count, lines * rank / ranks * kAlignment);
}

}  // namespace convoy::comm
