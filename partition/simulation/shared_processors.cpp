#include "partition/simulation/shared_processors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace convoy::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class SharedLoop {
 public:
  SharedLoop(const CostModel& cost, const Placement& placement, const SharedProcessors& shared)
      : cost_(cost),
        graph_(cost.graph()),
        placement_(placement),
        shared_(shared),
        devices_(static_cast<std::size_t>(placement.devices)),
        waiting_(static_cast<std::size_t>(graph_.node_count())),
        ready_at_(waiting_.size(), 0) {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) waiting_[node] = graph_.in_degree(node);
  }

  Nanoseconds run() {
    for (NodeIndex ended = 0; ended < graph_.node_count();) {
      start_what_can();
      const double step = next_event();
      if (step == kNever) throw std::runtime_error("the placement's order deadlocks");
      now_ += step;
      for (DeviceIndex device = 0; device < placement_.devices; ++device) ended += advance(device, step);
    }
    return static_cast<Nanoseconds>(std::llround(now_));
  }

 private:
  struct Device {
    std::size_t next = 0;
    NodeIndex running = kNone;
    double left = 0;  // of the running node, at full speed
  };

  void start_what_can() {
    for (DeviceIndex device = 0; device < placement_.devices; ++device) {
      Device& state = devices_[device];
      const auto& order = placement_.order[device];
      if (state.running != kNone || state.next == order.size()) continue;
      const NodeIndex node = order[state.next];
      if (waiting_[node] > 0 || ready_at_[node] > now_) continue;
      state.running = node, ++state.next;
      state.left = static_cast<double>(cost_.run_time(node, device));
    }
  }

  double speed(DeviceIndex device) const {
    const int group = shared_.group_of[device];
    double running = 0;
    for (DeviceIndex other = 0; other < placement_.devices; ++other)
      running += shared_.group_of[other] == group && devices_[other].running != kNone;
    return std::min(1.0, shared_.processors[group] / running);
  }

  double next_event() const {
    double step = kNever;
    for (DeviceIndex device = 0; device < placement_.devices; ++device) {
      const Device& state = devices_[device];
      const auto& order = placement_.order[device];
      if (state.running != kNone)
        step = std::min(step, state.left / speed(device));
      else if (state.next < order.size() && waiting_[order[state.next]] == 0)
        step = std::min(step, ready_at_[order[state.next]] - now_);
    }
    return step;
  }

  // The speeds are those before anything ended.
  NodeIndex advance(DeviceIndex device, double step) {
    if (device == 0) {
      speed_.resize(devices_.size());
      for (DeviceIndex each = 0; each < placement_.devices; ++each)
        if (devices_[each].running != kNone) speed_[each] = speed(each);
    }
    Device& state = devices_[device];
    if (state.running == kNone) return 0;
    state.left -= step * speed_[device];
    if (state.left > 1e-6) return 0;
    deliver(state.running, device);
    state.running = kNone;
    return 1;
  }

  // A tensor is sent once to each device, as large as its largest edge there.
  void deliver(NodeIndex node, DeviceIndex from) {
    std::vector<double> arrival(devices_.size(), now_);
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
      const DeviceIndex to = placement_.device_of[graph_.target(edge)];
      arrival[to] = std::max(arrival[to], now_ + static_cast<double>(cost_.transfer_time(edge, from, to)));
    }
    for (EdgeIndex edge = graph_.out_begin(node); edge < graph_.out_end(node); ++edge) {
      const NodeIndex consumer = graph_.target(edge);
      ready_at_[consumer] = std::max(ready_at_[consumer], arrival[placement_.device_of[consumer]]);
      --waiting_[consumer];
    }
  }

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Placement& placement_;
  const SharedProcessors& shared_;
  std::vector<Device> devices_;
  std::vector<EdgeIndex> waiting_;
  std::vector<double> ready_at_, speed_;
  double now_ = 0;
};

}  // namespace

Nanoseconds simulate_shared(const CostModel& cost, const Placement& placement,
                            const SharedProcessors& shared) {
  return SharedLoop(cost, placement, shared).run();
}

}  // namespace convoy::partition
