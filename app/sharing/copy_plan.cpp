#include "app/sharing/copy_plan.h"

#include <algorithm>

namespace convoy::app {
namespace {

// Ranges are extended to multiples of this many bytes, because a copy of a few bytes takes as long
// as a copy of 4 KiB.
constexpr std::int64_t kGrain = 4096;

}  // namespace

std::vector<CopyGroup> plan_copies(const MemoryRange& state, std::span<const MemoryRange> first_used,
                                   std::int64_t least_bytes) {
  std::vector<CopyGroup> groups;
  RangeSet planned;
  // The size of the last group. If it is at least `least_bytes`, the next range begins a new group.
  std::int64_t bytes = least_bytes;
  const auto append = [&](const MemoryRange& range) {
    const std::int64_t first = std::max<std::int64_t>(range.first() - state.first(), 0) / kGrain * kGrain;
    const std::int64_t end =
        std::min((range.end() - state.first() + kGrain - 1) / kGrain * kGrain, state.bytes);
    for (const MemoryRange& part : planned.add({state.first() + first, end - first})) {
      if (bytes >= least_bytes) groups.emplace_back(), bytes = 0;
      CopyGroup& group = groups.back();
      bytes += part.bytes;
      if (!group.empty() && group.back().end() == part.first())
        group.back().bytes += part.bytes;
      else
        group.push_back(part);
    }
  };
  for (const MemoryRange& range : first_used) append(range);
  bytes = least_bytes;  // begin a new group for the bytes that the step does not use
  append(state);
  return groups;
}

}  // namespace convoy::app
