#include "app/execute/memory_range.h"

#include <algorithm>
#include <iterator>

namespace convoy::app {

std::vector<MemoryRange> RangeSet::add(const MemoryRange& range) {
  std::vector<MemoryRange> parts;
  if (range.bytes <= 0) return parts;
  const std::byte *begin = range.first(), *end = range.end(), *next = begin;
  // Replace all ranges that touch the new one by their union.
  auto found = ranges_.upper_bound(begin);
  if (found != ranges_.begin() && std::prev(found)->second >= begin) --found;
  while (found != ranges_.end() && found->first <= end) {
    if (found->first > next) parts.push_back({next, found->first - next});
    next = std::max(next, found->second);
    begin = std::min(begin, found->first);
    found = ranges_.erase(found);
  }
  if (next < end) parts.push_back({next, end - next});
  ranges_[begin] = std::max(end, next);
  return parts;
}

}  // namespace convoy::app
