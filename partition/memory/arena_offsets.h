// Offsets of buffers with known lifetimes inside one arena.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::partition {

// Live from instruction `first` to instruction `last`, both included.
struct BufferLifetime {
  std::int64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct ArenaOffsets {
  std::vector<std::int64_t> offset;  // one a buffer, a multiple of the alignment
  std::int64_t bytes = 0;            // of the arena
  std::int64_t lower_bound = 0;      // max over time of the live bytes
};

// Best fit with lifetimes known: buffers are placed one after another, each into the smallest gap between the buffers
// that are live with it; from the largest to the smallest (Pisarchyk & Lee, "Efficient memory management for deep
// neural net inference", 2020), and by size x lifetime, lifetime and first use; the best of these is then
// improved by placing first what ended on top. Deterministic. Throws std::invalid_argument for a negative
// size or a lifetime that ends before it begins.
ArenaOffsets assign_offsets(const std::vector<BufferLifetime>& buffers, std::int64_t alignment = 256);

}  // namespace convoy::partition
