#include "partition/placement/exact_schedule.h"

#include <algorithm>

#include "partition/placement/exact_state.h"
#include "partition/placement/exhaustive.h"

namespace convoy::partition {
namespace {

constexpr double kMostPlacements = 1 << 18;

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
        device_of_(graph_.node_count(), 0),
        load_(cost.device_count(), 0),
        resident_(cost.device_count(), 0) {
    for (std::int32_t unit = 0; unit < units.count(); ++unit)
      if (!units.nodes(unit).empty()) order_.push_back(unit);
    // Assign devices to the units with the longest run times first, because they matter most.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::int32_t a, std::int32_t b) { return work(a) > work(b); });
  }

  ExactSearch run() {
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
      put(unit, device, 1);
      if (load_[device] < best_ && resident_[device] <= cost_.machine().device(device).memory_limit)
        assign(at + 1, std::max(used, device + 1));
      put(unit, device, -1);
    }
  }

  void put(std::int32_t unit, DeviceIndex device, int sign) {
    for (const NodeIndex node : units_.nodes(unit)) {
      device_of_[node] = device;
      load_[device] += sign * cost_.run_time(node, device);
      resident_[device] += sign * graph_.resident_bytes(node);
    }
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
  std::vector<DeviceIndex> device_of_;
  std::vector<Nanoseconds> load_;
  std::vector<Bytes> resident_;
  std::vector<std::int32_t> order_;
  bool stopped_ = false;
  ExactSearch result_;
};

}  // namespace

bool small_enough(const TaskGraph& graph, const Units& units, DeviceIndex devices) {
  return graph.node_count() <= kMostExactNodes && devices <= kMostExactDevices &&
         placement_count(units, devices) <= kMostPlacements;
}

ExactSearch search_exactly(const CostModel& cost, const Units& units, Nanoseconds shorter_than,
                           std::int64_t steps, Clock::time_point deadline) {
  return Enumerator(cost, units, shorter_than, steps, deadline).run();
}

}  // namespace convoy::partition
