// Adds up allocations and releases on each device in the order of time.
#include "partition/simulation/memory_use.h"

#include <algorithm>
#include <tuple>

namespace convoy::partition {
namespace {

// The order of events at the same time: outputs that are no longer needed are freed, outputs of
// starting nodes are allocated, outputs of nodes with no duration are freed.
enum Kind : std::int8_t { kFree, kAllocate, kFreeInstant };
struct Change {
  Nanoseconds time;
  Kind kind;
  Bytes bytes;
  bool operator<(const Change& other) const {
    return std::tie(time, kind) < std::tie(other.time, other.kind);
  }
};

class Sweep {
 public:
  explicit Sweep(std::size_t devices) : changes_(devices) {}
  void live(DeviceIndex device, Bytes bytes, Nanoseconds from, Nanoseconds until) {
    if (bytes == 0) return;
    changes_[device].push_back({from, kAllocate, bytes});
    changes_[device].push_back({until, until > from ? kFree : kFreeInstant, -bytes});
  }
  // Fills the curve of the bytes in memory over time, which begins with the resident bytes. Returns
  // the peak of the curve.
  Bytes run(DeviceIndex device, Bytes resident, std::vector<MemorySample>& curve) {
    std::vector<Change>& changes = changes_[device];
    std::sort(changes.begin(), changes.end());
    Bytes now = resident, peak = resident;
    curve.assign(1, {0, resident});
    for (std::size_t i = 0; i < changes.size(); ++i) {
      now += changes[i].bytes;
      peak = std::max(peak, now);
      const bool settled = i + 1 == changes.size() || changes[i + 1].time != changes[i].time;
      if (settled && now != curve.back().bytes) curve.push_back({changes[i].time, now});
    }
    return peak;
  }

 private:
  std::vector<std::vector<Change>> changes_;
};

}  // namespace

void account_memory(const TaskGraph& graph, std::span<const DeviceIndex> device_of, Simulation& result) {
  const std::size_t devices = result.use.size();
  Sweep sweep(devices);
  // For each node, its end or the arrival of its last transfer, whichever is later.
  std::vector<Nanoseconds> sent(result.finish);
  // A copy stays in memory until it has arrived and its last consumer on that device has ended.
  for (const SimulatedTransfer& transfer : result.transfers) {
    sent[transfer.producer] = std::max(sent[transfer.producer], transfer.arrival);
    Nanoseconds until = transfer.arrival;
    for (const NodeIndex next : graph.successors(transfer.producer))
      if (device_of[next] == transfer.to) until = std::max(until, result.finish[next]);
    sweep.live(transfer.to, transfer.bytes, transfer.start, until);
  }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const DeviceIndex home = device_of[node];
    Nanoseconds until = sent[node];
    for (const NodeIndex next : graph.successors(node))
      if (device_of[next] == home) until = std::max(until, result.finish[next]);
    sweep.live(home, graph.output_bytes(node), result.start[node], until);
    result.use[home].resident_bytes += graph.resident_bytes(node);
  }
  result.memory.resize(devices);
  for (std::size_t device = 0; device < devices; ++device)
    result.use[device].peak_bytes =
        sweep.run(static_cast<DeviceIndex>(device), result.use[device].resident_bytes, result.memory[device]);
}

}  // namespace convoy::partition
