#include "app/model_parallel/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "app/compile/memory_plan.h"
#include "app/model_parallel/placement_summary.h"
#include "app/model_parallel/stage_graph.h"
#include "app/model_parallel/step_tasks.h"
#include "partition/memory/overflow.h"
#include "partition/partition.h"

namespace convoy::app {
namespace {

using partition::Bytes;
std::size_t at(int i) { return static_cast<std::size_t>(i); }
double ms(partition::Nanoseconds time) { return static_cast<double>(time) * 1e-6; }

// The partitioner does not know that kernels work in place. So it may count up to 1.5 times the
// memory that a stage needs.
constexpr double kSlack = 1.5;

// Returns the memory limit of a stage's arena in bytes; 0 if there is none.
std::int64_t limit_of(std::int64_t requested, std::int64_t device_bytes) {
  if (device_bytes == 0) return requested;
  // A sixteenth of the device's memory is left for libraries and other buffers.
  return requested > 0 && requested <= device_bytes ? requested : device_bytes / 16 * 15;
}

}  // namespace

struct PartitionPlanner::State {
  // A placement, and what the partitioner says about it.
  struct Placed {
    StepPlacement placement;
    std::vector<partition::DeviceIndex> stage_of_task;  // for each task of make_step_tasks()
    // For each stage: the peak of its memory, and how long it computes in a step.
    std::vector<Bytes> expected_bytes;
    std::vector<double> busy_ms;
  };

  State(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
        MachineProfile profile);

  // Throws std::runtime_error if no placement can fit into memory. Needs no measured times.
  void refuse_impossible() const;
  int buffers_of_update() const;
  partition::TaskGraph tasks_of(const OpTimes& times) const;
  std::int64_t arena_bytes(const CompiledSteps& steps) const;
  std::string where() const;
  partition::Machine machine_with(const std::vector<Bytes>& limits) const;
  partition::PartitionResult partition_tasks(const partition::TaskGraph& tasks,
                                             const std::vector<Bytes>& limits) const;
  Placed place(const partition::TaskGraph& tasks) const;
  Placed placed_as(const partition::TaskGraph& tasks, const partition::PartitionResult& result) const;
  Placed keep_whole(const partition::TaskGraph& tasks) const;
  double predict(const PlacedTimes& times) const;
  PartitionPlan plan_of(Placed placed) const;

  const CompiledSteps& whole_;
  const StepOptions& options_;
  const RankGroups& groups_;
  const MachineProfile profile_;
  const std::int64_t memory_limit_;
  const int stages_;
  const StepDependences dependences_;
  std::int64_t one_rank_bytes_ = 0;  // bytes of the arena if one rank runs the whole step
  // The times that PartitionPlanner::place() got, and the placement that it found.
  MeasuredOps ops_;
  std::optional<Placed> placed_;
};

PartitionPlanner::State::State(const CompiledSteps& whole, const StepOptions& options,
                               const RankGroups& groups, MachineProfile profile)
    : whole_(whole),
      options_(options),
      groups_(groups),
      profile_(std::move(profile)),
      memory_limit_(limit_of(options.memory_limit, profile_.device_bytes)),
      stages_(groups.stages->size()),
      dependences_(find_dependences(whole.train->graph)) {
  const StepGraph& graph = whole_.train->graph;
  const StepPlacement one{stages_, std::vector<int>(graph.nodes.size(), 0), sequential_times(graph)};
  one_rank_bytes_ = arena_bytes(stage_of_steps(whole_, one, 0, options_));
}

void PartitionPlanner::State::refuse_impossible() const {
  if (memory_limit_ == 0) return;
  OpTimes any;
  any.node_ms.assign(whole_.train->graph.nodes.size(), 1);
  const partition::TaskGraph tasks = tasks_of(any);
  const partition::Units units(tasks, stages_);
  const auto proof = [&](double share) {
    const auto limit = static_cast<Bytes>(static_cast<double>(memory_limit_) * share);
    const partition::Machine machine = machine_with(std::vector<Bytes>(at(stages_), limit));
    return partition::infeasibility_certificate(partition::CostModel(tasks, machine), units);
  };
  if (proof(kSlack)) throw std::runtime_error(where() + *proof(1));
}

// Returns the milliseconds of a step with the placement that was found.
double PartitionPlanner::State::predict(const PlacedTimes& times) const {
  OpTimes ops = ops_.passed;
  ops.node_ms = times.alone;
  MachineProfile profile = profile_;
  profile.slowdown = times.slowdown;
  const double update = ops_.worked.update_ms_per_element;
  for (const double together : times.update)
    profile.update_slowdown.push_back(update > 0 && together > 0 ? together / update : 1);
  const StepPlacement& placement = placed_->placement;
  const StagePrograms programs =
      make_stage_programs(dependences_, placement.stage_of, stages_, placement.times);
  return simulate_programs(programs, costs_of_programs(profile, programs, tasks_of(ops),
                                                       placed_->stage_of_task, whole_.train->descs));
}

// Returns the number of buffers, such as momenta, that the optimizer updates in addition to the
// parameters. Each has as many bytes as the parameters.
int PartitionPlanner::State::buffers_of_update() const {
  return kernels::optimizer_inputs(options_.optimizer) - 2;
}

partition::TaskGraph PartitionPlanner::State::tasks_of(const OpTimes& times) const {
  return make_step_tasks(*whole_.train, dependences_,
                         {times, buffers_of_update(), profile_.reduce_ms, profile_.reduce_ms_per_byte});
}

std::int64_t PartitionPlanner::State::arena_bytes(const CompiledSteps& steps) const {
  const auto scratch = [this](std::size_t bytes) { return groups_.replicas->scratch_bytes(bytes); };
  return MemoryPlan(steps, options_, scratch).total();
}

std::string PartitionPlanner::State::where() const {
  return fmt::format("{} {} bytes, --partition {}: ",
                     memory_limit_ == options_.memory_limit
                         ? "--memory-limit"
                         : "15/16 of the free memory of the fullest device",
                     memory_limit_, stages_);
}

partition::Machine PartitionPlanner::State::machine_with(const std::vector<Bytes>& limits) const {
  partition::Machine machine = describe_machine(profile_.links);
  for (int stage = 0; stage < std::ssize(limits); ++stage)
    machine.device(stage).memory_limit = limits[at(stage)];
  return machine;
}

partition::PartitionResult PartitionPlanner::State::partition_tasks(const partition::TaskGraph& tasks,
                                                                    const std::vector<Bytes>& limits) const {
  const partition::Machine machine = machine_with(limits);
  const partition::CostModel cost(tasks, machine);
  partition::PartitionOptions options;
  options.seed = options_.members[0].seed;
  options.threads = 1;  // the other cores belong to other ranks
  // A job makes only one plan, with at most a few attempts, so each attempt may take this long.
  options.time_limit = std::chrono::milliseconds(250);
  // The time for finding a placement that fits into memory. If there is none, place() tries other
  // limits.
  options.repair_time = std::chrono::milliseconds(500);
  return partition::partition_graph(cost, options);
}

// Finds a placement whose arenas fit into memory. The partitioner ignores workspaces, gaps in the
// arena, and that kernels work in place. So its memory limits are corrected until the real arenas
// fit.
PartitionPlanner::State::Placed PartitionPlanner::State::place(const partition::TaskGraph& tasks) const {
  if (memory_limit_ == 0) return placed_as(tasks, partition_tasks(tasks, {}));
  constexpr int kTries = 12;
  const Bytes limit = memory_limit_;
  std::vector<Bytes> limits(at(stages_), limit);
  std::string reason;
  // If the partitioner finds no placement, this factor grows, and the limit of every stage becomes
  // `limit` times the factor.
  double most = 1;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const partition::PartitionResult result = partition_tasks(tasks, limits);
    if (!result.placement) {
      if (reason.empty()) reason = result.reason;
      if (most > kSlack) break;
      most *= 1.08;
      limits.assign(at(stages_), static_cast<Bytes>(static_cast<double>(limit) * most));
      continue;
    }
    Placed placed = placed_as(tasks, result);
    std::int64_t largest = 0;
    for (int stage = 0; stage < stages_; ++stage) {
      const std::int64_t bytes = placed.placement.arena_bytes[at(stage)];
      largest = std::max(largest, bytes);
      const Bytes excess = bytes - limit;
      // Lower the stage's limit so far that the partitioner cannot return this placement again.
      if (excess > 0)
        limits[at(stage)] = std::min(limits[at(stage)], placed.expected_bytes[at(stage)]) - excess;
    }
    if (largest <= limit) return placed;
    reason = fmt::format("the best placement found needs {} bytes on one rank", largest);
  }
  throw std::runtime_error(where() + reason);
}

PartitionPlanner::State::Placed PartitionPlanner::State::placed_as(
    const partition::TaskGraph& tasks, const partition::PartitionResult& result) const {
  if (!result.placement) throw std::runtime_error(fmt::format("--partition {}: {}", stages_, result.reason));
  const int nodes = static_cast<int>(whole_.train->graph.nodes.size());
  const partition::Machine machine = describe_machine(profile_.links);
  const partition::CostModel cost(tasks, machine);
  const partition::Placement placement{stages_, result.placement->device_of,
                                       updates_last(result.simulation.order, nodes)};
  const partition::Simulation simulation = partition::simulate(cost, placement);
  Placed placed;
  placed.stage_of_task = placement.device_of;
  placed.placement.stages = stages_;
  placed.placement.stage_of.assign(placement.device_of.begin(), placement.device_of.begin() + nodes);
  placed.placement.times = expected_times(simulation, placement.device_of, nodes);
  for (int stage = 0; stage < stages_; ++stage) {
    const CompiledSteps steps = stage_of_steps(whole_, placed.placement, stage, options_);
    placed.placement.arena_bytes.push_back(arena_bytes(steps));
    placed.busy_ms.push_back(ms(simulation.use[stage].busy));
    placed.expected_bytes.push_back(simulation.use[stage].peak_bytes);
  }
  return placed;
}

// Returns a plan with all tasks on the first rank, in the graph's order, because another order may
// need more memory.
PartitionPlanner::State::Placed PartitionPlanner::State::keep_whole(const partition::TaskGraph& tasks) const {
  partition::PartitionResult whole;
  whole.placement =
      partition::Placement{stages_, std::vector<partition::DeviceIndex>(at(tasks.node_count()), 0), {}};
  whole.simulation.order.resize(at(stages_));
  whole.simulation.order.front().resize(at(tasks.node_count()));
  std::iota(whole.simulation.order.front().begin(), whole.simulation.order.front().end(), 0);
  return placed_as(tasks, whole);
}

// Returns a plan with all that reports need, but without predicted times.
PartitionPlan PartitionPlanner::State::plan_of(Placed placed) const {
  PartitionPlan plan;
  plan.placement = std::move(placed.placement);
  for (int stage = 0; stage < stages_; ++stage) {
    StageSummary& summary = plan.stages.emplace_back();
    summary.arena_bytes = plan.placement.arena_bytes[at(stage)];
    summary.busy_ms = placed.busy_ms[at(stage)];
  }
  plan.one_rank_bytes = one_rank_bytes_;
  plan.link_bytes_per_ms = std::numeric_limits<double>::max();
  for (int a = 0; a < stages_; ++a)
    for (int b = 0; b < a; ++b) {
      const LinkCost& link = profile_.links[at(a)][at(b)];
      plan.link_latency_ms = std::max(plan.link_latency_ms, link.latency_ms);
      plan.link_bytes_per_ms = std::min(plan.link_bytes_per_ms, link.bytes_per_ms);
    }
  summarise_stages(*whole_.train,
                   make_stage_programs(dependences_, plan.placement.stage_of, stages_, plan.placement.times),
                   plan);
  return plan;
}

PartitionPlanner::PartitionPlanner(const CompiledSteps& whole, const StepOptions& options,
                                   const RankGroups& groups, MachineProfile profile)
    : state_(std::make_unique<State>(whole, options, groups, std::move(profile))) {
  state_->refuse_impossible();
}

PartitionPlanner::~PartitionPlanner() = default;

std::int64_t PartitionPlanner::memory_limit() const { return state_->memory_limit_; }

bool PartitionPlanner::fits_one_rank() const {
  return state_->memory_limit_ == 0 || state_->one_rank_bytes_ <= state_->memory_limit_;
}

StepPlacement PartitionPlanner::place(MeasuredOps ops) {
  state_->placed_.reset();
  state_->placed_ = state_->place(state_->tasks_of(ops.passed));
  state_->ops_ = std::move(ops);
  return state_->placed_->placement;
}

// Keeps the partitioned step only if it is predicted to be at least 5 % faster than one rank, or if
// one rank cannot hold the step. The margin is needed because predictions leave out some waits for
// tensors. On GPUs they have been 1 to 21 % too short, most of all for small kernels.
PartitionPlan PartitionPlanner::choose(double concurrency_ratio, const PlacedTimes& placed_times) const {
  constexpr double kWorthwhile = 0.95;
  if (!state_->placed_) throw std::logic_error("a plan is chosen before operations are placed");
  const partition::TaskGraph tasks = state_->tasks_of(state_->ops_.passed);
  const double one_rank_ms = ms(tasks.total_time()) * concurrency_ratio;
  const double predicted_ms = state_->predict(placed_times);
  const bool keeps_whole = predicted_ms >= kWorthwhile * one_rank_ms && fits_one_rank();
  PartitionPlan plan = state_->plan_of(keeps_whole ? state_->keep_whole(tasks) : *state_->placed_);
  plan.predicted_step_ms = keeps_whole ? one_rank_ms : predicted_ms;
  plan.one_rank_ms = one_rank_ms;
  return plan;
}

}  // namespace convoy::app
