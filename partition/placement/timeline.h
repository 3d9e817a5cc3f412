// The idle times of one device, for schedulers that insert nodes between others.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class Timeline {
 public:
  // Returns the earliest start, not before `ready`, at which the device is idle for `length`.
  // Without insertion, the start is after all nodes placed so far.
  Nanoseconds earliest(Nanoseconds ready, Nanoseconds length, bool insertion = true) const {
    for (auto gap = first_ending_after(ready); insertion && gap != gaps_.end(); ++gap) {
      const Nanoseconds start = std::max(ready, gap->begin);
      if (length <= gap->end - start) return start;
    }
    return std::max(ready, open_from_);
  }

  void occupy(Nanoseconds start, Nanoseconds length) {
    if (length == 0) return;
    if (start >= open_from_) {
      if (start > open_from_) gaps_.push_back({open_from_, start});
      open_from_ = start + length;
      return;
    }
    auto gap = gaps_.begin() + (first_ending_after(start) - gaps_.begin());
    const Gap rest{start + length, gap->end};
    gap->end = start;
    if (rest.begin < rest.end && gap->begin < gap->end)
      gaps_.insert(gap + 1, rest);
    else if (rest.begin < rest.end)
      *gap = rest;
    else if (gap->begin >= gap->end)
      gaps_.erase(gap);
  }

 private:
  struct Gap {
    Nanoseconds begin, end;
  };
  std::vector<Gap>::const_iterator first_ending_after(Nanoseconds time) const {
    return std::upper_bound(gaps_.begin(), gaps_.end(), time,
                            [](Nanoseconds t, const Gap& gap) { return t < gap.end; });
  }
  std::vector<Gap> gaps_;      // idle times between nodes, ascending and disjoint
  Nanoseconds open_from_ = 0;  // the device is idle from this time on
};

}  // namespace convoy::partition
