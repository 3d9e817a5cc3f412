#include "partition/placement/exact_schedule.h"

#include <algorithm>

#include "partition/placement/exact_state.h"

namespace convoy::partition {
namespace {

class Enumerator {
 public:
  Enumerator(const CostModel& cost, const Units& units, Nanoseconds shorter_than, std::int64_t steps,
             Clock::time_point deadline)
      : cost_(cost),
        graph_(cost.graph()),
        units_(units),
        best_(shorter_than),
        steps_(steps),
        deadline_(deadline),
        equal_devices_(interchangeable(cost, units)),
        level_(bottom_levels(cost)),
        device_of_(graph_.node_count(), kNone),
        earliest_(graph_.node_count(), 0),
        load_(cost.device_count(), 0),
        resident_(cost.device_count(), 0) {
    for (std::int32_t unit = 0; unit < units.count(); ++unit)
      if (!units.nodes(unit).empty()) order_.push_back(unit);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      least_time_.push_back(cost.run_time(node, 0));
      for (DeviceIndex device = 1; device < cost.device_count(); ++device)
        least_time_[node] = std::min(least_time_[node], cost.run_time(node, device));
      least_work_ += least_time_[node];
    }
    // Assign devices to the units with the longest run times first, because they matter most.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int32_t a, std::int32_t b) { return work(a) > work(b); });
  }

  ExactSearchResult run() {
    assign(0, 0);
    result_.complete = !stopped_;
    return std::move(result_);
  }

 private:
  Nanoseconds work(std::int32_t unit) const {
    Nanoseconds sum = 0;
    for (const NodeIndex node : units_.nodes(unit)) sum += cost_.average_time(node);
    return sum;
  }

  bool stop() {
    constexpr std::int64_t kLookAtClock = 256;
    if (!stopped_ && (--steps_ <= 0 || (steps_ % kLookAtClock == 0 && Clock::now() >= deadline_)))
      stopped_ = true;
    return stopped_;
  }

  void assign(std::size_t at, DeviceIndex used) {
    if (stop()) return;
    if (at == order_.size()) {
      const ExactState state(cost_, device_of_);
      if (state.bound() < best_) schedule(state);
      return;
    }
    const std::int32_t unit = order_[at];
    const DeviceIndex pin = units_.pin(unit);
    DeviceIndex until = cost_.device_count();
    if (equal_devices_) until = std::min(until, used + 1);
    for (DeviceIndex device = 0; device < until; ++device) {
      if (pin != kNone && pin != device) continue;
      put(unit, device);
      if (resident_[device] <= cost_.machine().device(device).memory_limit && may_be_shorter(device))
        assign(at + 1, std::max(used, device + 1));
      take_away(unit, device);
    }
  }

  void put(std::int32_t unit, DeviceIndex device) {
    for (const NodeIndex node : units_.nodes(unit)) {
      device_of_[node] = device;
      load_[device] += cost_.run_time(node, device);
      least_work_ += cost_.run_time(node, device) - least_time_[node];
      resident_[device] += graph_.resident_bytes(node);
    }
  }

  void take_away(std::int32_t unit, DeviceIndex device) {
    for (const NodeIndex node : units_.nodes(unit)) {
      device_of_[node] = kNone;
      load_[device] -= cost_.run_time(node, device);
      least_work_ -= cost_.run_time(node, device) - least_time_[node];
      resident_[device] -= graph_.resident_bytes(node);
    }
  }

  // Returns whether the schedule may be shorter than best_. Units without a device count with their
  // shortest time and no transfers. `changed` is the device that just got a unit.
  bool may_be_shorter(DeviceIndex changed) {
    const Nanoseconds most = best_ - 1;
    const DeviceIndex devices = cost_.device_count();
    if (load_[changed] > most || (least_work_ + devices - 1) / devices > most) return false;
    for (const NodeIndex node : graph_.topological_order()) {
      const DeviceIndex home = device_of_[node];
      Nanoseconds begin = 0;
      for (const EdgeIndex edge : graph_.in_edges(node)) {
        const NodeIndex producer = graph_.source(edge);
        const DeviceIndex from = device_of_[producer];
        const bool sent = home != kNone && from != kNone && home != from;
        begin = std::max(begin, earliest_[producer] + (sent ? cost_.transfer_time(edge, from, home) : 0));
      }
      earliest_[node] = begin + (home == kNone ? least_time_[node] : cost_.run_time(node, home));
      if (earliest_[node] > most) return false;
    }
    return true;
  }

  // Tries all orders of the nodes. All units have a device at this point.
  void schedule(ExactState state) {
    if (stop()) return;
    const DeviceIndex device = state.advance();
    if (device == kNone) {
      if (state.ended()) consider(state);
      return;
    }
    if (state.bound() >= best_ || !state.within_limits()) return;
    std::vector<NodeIndex> next;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      if (device_of_[node] == device && state.selectable(node)) next.push_back(node);
    std::stable_sort(next.begin(), next.end(),
                     [&](NodeIndex a, NodeIndex b) { return level_[a] > level_[b]; });
    for (const NodeIndex node : next) {
      ExactState chosen = state;
      chosen.choose(device, node);
      schedule(chosen);
    }
  }

  void consider(const ExactState& state) {
    Nanoseconds makespan = 0;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node)
      makespan = std::max(makespan, state.finish(node));
    if (makespan >= best_ || !state.within_limits()) return;
    best_ = makespan;
    Placement placement{cost_.device_count(), device_of_, {}};
    placement.order.resize(cost_.device_count());
    for (const NodeIndex node : graph_.topological_order()) placement.order[device_of_[node]].push_back(node);
    for (std::vector<NodeIndex>& order : placement.order)
      std::ranges::sort(order, {}, [&](NodeIndex node) { return state.turn(node); });
    result_.placement = std::move(placement);
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Units& units_;
  Nanoseconds best_;
  std::int64_t steps_;
  const Clock::time_point deadline_;
  const bool equal_devices_;
  const std::vector<Nanoseconds> level_;
  std::vector<DeviceIndex> device_of_;   // kNone for nodes that have no device yet
  std::vector<Nanoseconds> earliest_;    // used inside may_be_shorter(): the earliest end of each node
  std::vector<Nanoseconds> least_time_;  // for each node, its run time on the fastest device
  // The run times of all nodes, each on its device or, without one, on the fastest device.
  Nanoseconds least_work_ = 0;
  std::vector<Nanoseconds> load_;
  std::vector<Bytes> resident_;
  std::vector<std::int32_t> order_;
  bool stopped_ = false;
  ExactSearchResult result_;
};

}  // namespace

bool small_enough(const TaskGraph& graph, DeviceIndex devices) {
  return graph.node_count() <= kMostExactNodes && devices <= kMostExactDevices;
}

ExactSearchResult search_exactly(const CostModel& cost, const Units& units, Nanoseconds shorter_than,
                                 std::int64_t steps, Clock::time_point deadline) {
  return Enumerator(cost, units, shorter_than, steps, deadline).run();
}

}  // namespace convoy::partition
