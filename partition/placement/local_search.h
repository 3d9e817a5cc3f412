// The local search and its state; improvement.h describes the search.
#pragma once

#include <optional>
#include <vector>

#include "partition/placement/improvement.h"
#include "partition/placement/schedule_memory.h"
#include "partition/placement/schedule_state.h"
#include "partition/random.h"

namespace convoy::partition {

// The quality of a schedule. A smaller memory excess comes first, a shorter makespan second.
struct Score {
  Bytes overflow = 0;
  Nanoseconds makespan = 0;
  auto operator<=>(const Score&) const = default;
};

class LocalSearch {
 public:
  LocalSearch(const CostModel& cost, const Units& units, const Placement& placement,
              const ImprovementLimits& limits)
      : cost_(cost),
        graph_(cost.graph()),
        units_(units),
        limits_(limits),
        limited_(cost.machine().limited()),
        random_(limits.seed),
        best_(placement),
        state_(std::in_place, cost, placement.device_of, simulate(cost, placement, Detail::kTimes)),
        memory_(cost),
        in_cluster_(graph_.node_count(), 0) {
    best_score_ = score_ = score();
  }

  Placement run(ImprovementCounts* counts);

 private:
  // The loop of the search:
  bool out_of_time();
  std::int64_t work() const { return work_ + state_->work(); }
  void set_temperature();
  void refresh();  // recomputes temperature_, path_ and at_peak_
  void step();     // tries one random move
  void kick();     // leaves a local optimum

  // The moves. Each function makes a change and decides whether to keep it:
  void try_node(NodeIndex node);  // moves the node to another device or position in its order
  // moves path_[at] together with its neighbours on the path that are on the same device
  void try_stretch(std::size_t at);
  void try_cluster(NodeIndex node);  // moves nodes that are joined by expensive edges
  void try_swap(NodeIndex node);     // swaps the node with one that runs at a similar time
  bool try_relief();                 // moves a node that holds memory on a device above its limit
  DeviceIndex neighbour_device(NodeIndex node);
  DeviceIndex other_device(DeviceIndex device);
  bool add_unit(NodeIndex node, DeviceIndex device);

  // Functions that accept or reject a move:
  void decide(ScheduleState::Move move);  // commits the move, or undoes it
  bool acceptable(Nanoseconds makespan, Score& next);
  bool fit_first() const { return limits_.fit_at_any_cost && best_score_.overflow > 0; }
  Nanoseconds limit() const;  // the longest makespan at which the current move is accepted
  Score score() { return {limited_ ? memory_.overflow(*state_) : 0, state_->makespan()}; }
  // Returns the makespan plus a penalty for the bytes above the memory limits.
  Nanoseconds penalised(const Score& score) const;
  double first_penalty() const;
  void adapt_penalty();

  // Functions that save the best placement, or continue the search from another placement:
  void save_best();
  void return_to_best();
  void reorder_by_list_scheduling();
  void restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation);

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Units& units_;
  const ImprovementLimits limits_;
  const bool limited_;
  Random random_;
  Placement best_;  // the best placement, unless unsaved_ is true
  Score best_score_;
  bool unsaved_ = false;  // true: state_ is the best schedule, and best_ is outdated

  std::optional<ScheduleState> state_;
  ScheduleMemory memory_;
  Score score_;             // score of state_
  double used_ = 0;         // fraction of the work, moves or time used at the last set_temperature()
  double temperature_ = 0;  // in nanoseconds
  Nanoseconds slack_ = 0;   // how much the current move may lengthen the schedule
  double penalty_ = 0;      // in nanoseconds per byte above the limits
  // Numbers of schedules within and above the memory limits since the last change of the penalty.
  int within_ = 0, beyond_ = 0;
  bool kicking_ = false;  // whether the current move is accepted regardless of its cost
  bool stale_ = true;     // whether refresh() must run before the next move
  std::vector<NodeIndex> path_;
  std::vector<Reassignment> moves_;  // the nodes that the current move changes, with their devices
  std::vector<NodeIndex> cluster_;
  // The nodes that hold memory at the worst peak: on the device that exceeds its limit most, at the
  // time of its peak (ScheduleMemory::nodes_at_peak()).
  std::vector<NodeIndex> at_peak_;
  std::vector<std::uint32_t> in_cluster_;  // cluster_number_ of the last cluster of each node
  std::uint32_t cluster_number_ = 0;
  // Numbers of moves: since refresh(), and since the last new best schedule, restart or kick(). The
  // second number counts a move twice if decide() has judged it.
  std::int64_t since_refresh_ = 0, since_best_ = 0;
  std::int64_t work_ = 0;             // work done (work.h), except that of state_
  std::int64_t work_at_listing_ = 0;  // work() at the last reorder_by_list_scheduling()
  Clock::time_point begin_ = Clock::now();
  ImprovementCounts counts_;
};

}  // namespace convoy::partition
