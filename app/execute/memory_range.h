// Ranges of memory, and sets of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace convoy::app {

// A range of memory that an instruction reads or writes.
struct MemoryRange {
  const void* begin = nullptr;
  std::int64_t bytes = 0;

  const std::byte* first() const { return static_cast<const std::byte*>(begin); }
  const std::byte* end() const { return first() + bytes; }
  bool overlaps(const MemoryRange& other) const { return first() < other.end() && other.first() < end(); }
  bool operator==(const MemoryRange&) const = default;
};

class RangeSet {
 public:
  // Adds the range. Returns its parts that were not in the set, in ascending order.
  std::vector<MemoryRange> add(const MemoryRange& range);

 private:
  std::map<const std::byte*, const std::byte*> ranges_;  // maps the begin of a range to its end
};

}  // namespace convoy::app
