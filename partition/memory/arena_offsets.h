// Assigns offsets in one block of memory (arena) to buffers with known lifetimes.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::partition {

// A buffer that is live from instruction `first` to instruction `last`, inclusive.
struct BufferLifetime {
  std::int64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct ArenaOffsets {
  std::vector<std::int64_t> offset;  // offset of each buffer in bytes, a multiple of the alignment
  std::int64_t bytes = 0;            // size of the arena
  std::int64_t lower_bound = 0;      // the most bytes that are live at any time
};

// Assigns offsets by best fit: each buffer gets the smallest sufficient gap between the buffers
// that are live at the same time. Tries several orders of the buffers: by size (Pisarchyk & Lee,
// "Efficient memory management for deep neural net inference", 2020), by size × lifetime, by
// lifetime, and by first use. Then improves the best result by assigning its topmost buffers first.
// The result is deterministic. Throws std::invalid_argument for a negative size or a lifetime that
// ends before it begins.
ArenaOffsets assign_offsets(const std::vector<BufferLifetime>& buffers, std::int64_t alignment = 256);

}  // namespace convoy::partition
