#include "partition/memory/arena_offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

namespace convoy::partition {
namespace {

std::int64_t live_bytes_peak(const std::vector<BufferLifetime>& buffers) {
  std::map<std::int64_t, std::int64_t> change;
  for (const BufferLifetime& buffer : buffers) {
    change[buffer.first] += buffer.bytes;
    change[buffer.last + 1] -= buffer.bytes;
  }
  std::int64_t live = 0, peak = 0;
  for (const auto& [time, bytes] : change) peak = std::max(peak, live += bytes);
  return peak;
}

}  // namespace

ArenaOffsets assign_offsets(const std::vector<BufferLifetime>& buffers, std::int64_t alignment) {
  const auto round_up = [&](std::int64_t value) { return (value + alignment - 1) / alignment * alignment; };
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes < 0 || buffers[i].last < buffers[i].first)
      throw std::invalid_argument(fmt::format("buffer {}: {} bytes, live from {} to {}", i, buffers[i].bytes,
                                              buffers[i].first, buffers[i].last));
  std::vector<std::size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });

  ArenaOffsets result;
  result.offset.assign(buffers.size(), 0);
  result.lower_bound = live_bytes_peak(buffers);
  std::vector<std::size_t> placed;  // by ascending offset
  for (const std::size_t current : by_size) {
    const std::int64_t size = round_up(buffers[current].bytes);
    std::int64_t best = -1, best_gap = std::numeric_limits<std::int64_t>::max(), free_from = 0;
    for (const std::size_t other : placed) {
      const bool together =
          buffers[other].first <= buffers[current].last && buffers[current].first <= buffers[other].last;
      if (!together) continue;
      const std::int64_t gap = result.offset[other] - free_from;
      if (gap >= size && gap < best_gap) best = free_from, best_gap = gap;
      free_from = std::max(free_from, result.offset[other] + round_up(buffers[other].bytes));
    }
    result.offset[current] = best >= 0 ? best : free_from;
    result.bytes = std::max(result.bytes, result.offset[current] + size);
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), current,
                         [&](std::size_t a, std::size_t b) { return result.offset[a] < result.offset[b]; });
    placed.insert(position, current);
  }
  return result;
}

}  // namespace convoy::partition
