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

class Packer {
 public:
  Packer(const std::vector<BufferLifetime>& buffers, std::int64_t alignment)
      : buffers_(buffers), sizes_(buffers.size()) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      sizes_[i] = (buffers[i].bytes + alignment - 1) / alignment * alignment;
    result_.offset.assign(buffers.size(), 0);
    result_.lower_bound = live_bytes_peak(buffers);
    result_.bytes = std::numeric_limits<std::int64_t>::max();
    std::vector<BufferLifetime> rounded = buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i) rounded[i].bytes = sizes_[i];
    reachable_ = live_bytes_peak(rounded);
  }

  ArenaOffsets run() {
    try_order(sorted([&](std::size_t i) { return static_cast<double>(sizes_[i]); }));
    try_order(sorted([&](std::size_t i) { return static_cast<double>(sizes_[i]) * length(i); }));
    try_order(sorted([&](std::size_t i) { return length(i); }));
    try_order(sorted([&](std::size_t i) { return -static_cast<double>(buffers_[i].first); }));
    promote();
    return std::move(result_);
  }

 private:
  using Order = std::vector<std::size_t>;

  double length(std::size_t i) const { return static_cast<double>(buffers_[i].last - buffers_[i].first + 1); }

  template <typename Key>
  Order sorted(const Key& key) const {
    Order order(buffers_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return key(a) != key(b) ? key(a) > key(b) : sizes_[a] > sizes_[b];
    });
    return order;
  }

  bool done() const { return result_.bytes <= reachable_; }

  // Assigns offsets to the buffers in this order. A buffer gets the smallest sufficient gap between
  // the buffers that are live at the same time. If there is none, it is placed above them.
  void try_order(const Order& order) {
    if (done()) return;
    std::vector<std::int64_t> offset(buffers_.size(), 0);
    Order placed;  // buffers already placed, by ascending offset
    std::int64_t bytes = 0;
    for (const std::size_t current : order) {
      const BufferLifetime& buffer = buffers_[current];
      std::int64_t best = -1, best_gap = std::numeric_limits<std::int64_t>::max(), free_from = 0;
      for (const std::size_t other : placed) {
        if (buffers_[other].first > buffer.last || buffer.first > buffers_[other].last) continue;
        const std::int64_t gap = offset[other] - free_from;
        if (gap >= sizes_[current] && gap < best_gap) best = free_from, best_gap = gap;
        free_from = std::max(free_from, offset[other] + sizes_[other]);
      }
      offset[current] = best >= 0 ? best : free_from;
      bytes = std::max(bytes, offset[current] + sizes_[current]);
      const auto position =
          std::upper_bound(placed.begin(), placed.end(), current,
                           [&](std::size_t a, std::size_t b) { return offset[a] < offset[b]; });
      placed.insert(position, current);
    }
    if (bytes >= result_.bytes) return;
    result_.bytes = bytes, result_.offset = std::move(offset);
    order_ = order;
  }

  // Moves the topmost buffer to the front of the order, because it was placed too late, and assigns
  // all offsets again. Repeats this as long as the budget allows.
  void promote() {
    // The budget is at most kMostRounds orders, and about kBudget comparisons of buffers in total.
    constexpr std::int64_t kBudget = 40'000'000, kMostRounds = 300;
    const auto count = static_cast<std::int64_t>(buffers_.size());
    std::vector<int> promoted(buffers_.size(), 0);
    Order order = order_;
    const std::int64_t rounds = std::min(kMostRounds, kBudget / (count * count));
    for (std::int64_t round = 0; !done() && round < rounds; ++round) {
      const auto top = std::max_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return top_of(a) - penalty(promoted[a]) < top_of(b) - penalty(promoted[b]);
      });
      ++promoted[*top];
      std::rotate(order.begin(), top, top + 1);
      const std::int64_t best = result_.bytes;
      try_order(order);
      if (result_.bytes == best && promoted[order[0]] > 2) order = order_;
    }
  }
  std::int64_t top_of(std::size_t i) const { return result_.offset[i] + sizes_[i]; }
  std::int64_t penalty(int times) const { return times * (result_.bytes / 50); }

  const std::vector<BufferLifetime>& buffers_;
  std::vector<std::int64_t> sizes_;
  std::int64_t reachable_ = 0;  // the lower bound with sizes rounded up to the alignment
  Order order_;                 // order of the buffers that gave the best result
  ArenaOffsets result_;
};

}  // namespace

ArenaOffsets assign_offsets(const std::vector<BufferLifetime>& buffers, std::int64_t alignment) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes < 0 || buffers[i].last < buffers[i].first)
      throw std::invalid_argument(fmt::format("buffer {}: {} bytes, live from {} to {}", i, buffers[i].bytes,
                                              buffers[i].first, buffers[i].last));
  if (buffers.empty()) return {};
  return Packer(buffers, alignment).run();
}

}  // namespace convoy::partition
