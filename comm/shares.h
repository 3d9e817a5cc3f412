// How the ranks divide a buffer among them that they sum. Internal to comm.
#pragma once

#include <algorithm>
#include <cstdint>

namespace convoy::comm {

// First element of a rank's share of `count`; a share begins on a whole cache line of the buffer.
inline std::int64_t share_begin(std::int64_t count, int rank, int ranks) {
  constexpr std::int64_t kAlignment = 64;
  const std::int64_t lines = (count + kAlignment - 1) / kAlignment;
  return std::min(count, lines * rank / ranks * kAlignment);
}

}  // namespace convoy::comm
