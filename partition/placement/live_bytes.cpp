#include "partition/placement/live_bytes.h"

#include <algorithm>

namespace convoy::partition {
namespace {

// The kinds of events. Time and kind of an event are stored as time * kKinds + kind. So events at
// the same time are processed in this order: outputs that are no longer needed are freed, outputs
// of starting nodes are allocated, outputs of nodes with no duration are freed.
constexpr std::int64_t kKinds = 4, kFree = 0, kAllocate = 1, kFreeInstant = 2;

}  // namespace

LiveBytes::LiveBytes(std::int32_t tensors, DeviceIndex devices)
    : event_(2 * static_cast<std::size_t>(tensors)), row_(devices) {}

void LiveBytes::add_tensor(std::int32_t tensor, DeviceIndex device, Bytes bytes, Nanoseconds from,
                           Nanoseconds until) {
  if (bytes == 0) return;
  add_event(2 * tensor, device, from * kKinds + kAllocate, bytes);
  add_event(2 * tensor + 1, device, until * kKinds + (until > from ? kFree : kFreeInstant), -bytes);
}

void LiveBytes::add_event(std::int32_t event, DeviceIndex device, std::int64_t when, Bytes change) {
  Event& added = event_[event];
  if (added.device != device) row_[device].push_back({when, change, event});
  added = {when, change, query_, device};
}

void LiveBytes::sort(std::vector<Listed>& row) const {
  const auto earlier = [](const Listed& a, const Listed& b) { return a.when < b.when; };
  std::size_t moved = 0;
  for (std::size_t at = 1; at < row.size(); ++at) {
    if (row[at - 1].when <= row[at].when) continue;
    const auto place =
        std::upper_bound(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(at), row[at], earlier);
    const auto here = row.begin() + static_cast<std::ptrdiff_t>(at);
    moved += static_cast<std::size_t>(here - place);
    std::rotate(place, here, here + 1);
    // If events move further than this on average, sorting the whole row is cheaper.
    constexpr std::size_t kMostMoved = 32;
    if (moved > kMostMoved * row.size()) return std::sort(row.begin(), row.end(), earlier);
  }
}

LiveBytes::Peak LiveBytes::peak(DeviceIndex device) {
  std::vector<Listed>& row = row_[device];
  std::size_t kept = 0;
  for (const Listed& listed : row) {
    Event& event = event_[listed.event];
    if (event.device != device) continue;  // the event is listed in another device's row now
    if (event.query != query_) {
      event.device = kNone;
      continue;
    }
    row[kept++] = {event.when, event.change, listed.event};
  }
  row.resize(kept);
  sort(row);
  Peak peak;
  Bytes now = 0;
  for (const Listed& listed : row)
    if ((now += listed.change) > peak.bytes) peak = {now, listed.when / kKinds};
  return peak;
}

}  // namespace convoy::partition
