// The state of the anytime improvement; see improvement.h.
#pragma once

#include <optional>
#include <vector>

#include "partition/placement/improvement.h"
#include "partition/placement/schedule_state.h"
#include "partition/random.h"

namespace convoy::partition {

// How good a schedule is: first it must fit, then it must be short.
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
        in_cluster_(graph_.node_count(), 0) {
    recorded_ = current_ = score();
  }

  Placement run(ImprovementCounts* counts);

 private:
  bool out_of_time();
  Score score() const { return {limited_ ? state_->overflow() : 0, state_->makespan()}; }
  void cool();
  void refresh();
  void step();
  void kick();
  void try_node(NodeIndex node);
  void try_run(std::size_t at);
  void try_cluster(NodeIndex node);
  void try_swap(NodeIndex node);
  bool try_relief();
  DeviceIndex neighbour_device(NodeIndex node);
  DeviceIndex other_device(DeviceIndex device);
  bool add_unit(NodeIndex node, DeviceIndex device);
  void decide(bool finished);
  bool acceptable(Nanoseconds makespan, Score& next) const;
  // The makespan plus what the excess over memory limits counts as.
  Nanoseconds weighed(const Score& score) const;
  double start_weight() const;
  void weigh_overflow();
  // No makespan may exceed this in the current move.
  Nanoseconds limit() const;
  void keep_best();
  void return_to_best();
  void list_again();
  void restart_from(std::span<const DeviceIndex> device_of, const Simulation& simulation);

  const CostModel& cost_;
  const TaskGraph& graph_;
  const Units& units_;
  const ImprovementLimits limits_;
  const bool limited_;
  Random random_;
  Placement best_;

  std::optional<ScheduleState> state_;
  Score current_, recorded_;     // of the state, and of the best
  double temperature_ = 0;       // in nanoseconds
  Nanoseconds slack_ = 0;        // what the move at hand may add
  double ns_per_byte_ = 0;       // of excess over limits, once something fits
  int within_ = 0, beyond_ = 0;  // limits: schedules since the weight was looked at
  bool kicking_ = false;         // the move at hand is taken whatever it costs
  bool unsaved_ = false, stale_ = true;
  std::vector<NodeIndex> path_;
  std::vector<Reassignment> moves_;
  std::vector<NodeIndex> cluster_;
  std::vector<NodeIndex> held_;  // on the device that exceeds its limit most
  std::vector<std::uint32_t> in_cluster_;
  std::uint32_t cluster_round_ = 0;
  bool tails_known_ = false;
  std::int64_t since_refresh_ = 0, since_best_ = 0, recomputed_at_tails_ = 0, recomputed_at_listing_ = 0;
  Clock::time_point begin_ = Clock::now();
  ImprovementCounts counts_;
};

}  // namespace convoy::partition
