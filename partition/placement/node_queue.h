// A priority queue of the nodes whose times must be computed again. It yields the entry with the
// largest key first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class NodeQueue {
 public:
  using Entry = std::pair<std::int64_t, NodeIndex>;  // key and node

  bool empty() const { return heap_.size() == (taken_ ? 1 : 0); }
  void clear() {
    heap_.clear();
    taken_ = false;
  }
  // Returns the largest entry. Leaves it in the heap until the next call: most callers add another
  // entry then, and replacing an entry is cheaper than removing one and adding one.
  Entry take() {
    if (taken_) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    taken_ = true;
    return heap_.front();
  }
  void add(Entry entry) {
    if (taken_) return replace_first(entry);
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end());
  }

 private:
  void replace_first(Entry entry) {
    taken_ = false;
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[child] < heap_[child + 1]) ++child;
      if (heap_[child] < entry) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = entry;
  }

  std::vector<Entry> heap_;
  bool taken_ = false;  // whether the first entry of the heap has left the queue
};

}  // namespace convoy::partition
