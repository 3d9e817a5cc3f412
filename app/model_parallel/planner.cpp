#include "app/model_parallel/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/compile/memory_plan.h"
#include "app/model_parallel/placement_summary.h"
#include "app/model_parallel/stage_graph.h"
#include "app/timing/single_device_step.h"
#include "kernels/device/device_memory.h"
#include "partition/memory/overflow.h"

namespace convoy::app {
namespace {

using partition::Bytes;
std::size_t at(int i) { return static_cast<std::size_t>(i); }
double ms(partition::Nanoseconds time) { return static_cast<double>(time) * 1e-6; }

// Kernels that work in place need less than their tasks tell: at most a third.
constexpr double kSlack = 1.5;

// Of a part's arena; 0: none.
std::int64_t limit_of(std::int64_t asked, std::int64_t device_bytes) {
  if (device_bytes == 0) return asked;
  // Else but for a sixteenth, in which places of the arena may reuse_delay and libraries find room.
  return asked > 0 && asked <= device_bytes ? asked : device_bytes / 16 * 15;
}

}  // namespace

Planner::Planner(CompiledSteps whole, const StepOptions& options, const RankGroups& groups,
                 MachineProfile machine_profile)
    : options_(options),
      memory_limit_(limit_of(options.memory_limit, machine_profile.device_bytes)),
      groups_(groups),
      parts_(groups.parts->size()),
      machine_profile_(std::move(machine_profile)),
      machine_(describe_machine(machine_profile_.links)),
      control_memory_(options.backend, sizeof(kernels::StepControl)),
      whole_(std::move(whole)) {
  kernels::StepControl control;
  control.seed = options.seed;
  const StepGraph& graph = whole_.train->graph;
  control.valid = static_cast<std::int32_t>(graph.tensors[at(graph.labels)].shape[0]);
  control.global_valid = control.valid * groups.replicas->size();
  control.learning_rate = 1e-3f;
  kernels::copy_in(options.backend, control_memory_.data(), &control, sizeof control);
  dependences_ = find_dependences(whole_.train->graph);
  const StepPlacement one{parts_, std::vector<int>(graph.nodes.size(), 0), sequential_times(graph)};
  one_rank_bytes_ = arena_bytes(stage_of_steps(whole_, one, 0, options));
}

void Planner::refuse_impossible() {
  if (memory_limit_ == 0) return;
  TaskCosts costs;
  costs.times.node_ms.assign(whole_.train->graph.nodes.size(), 1);
  costs.optimizer_states = buffers_of_update();
  tasks_ = make_step_tasks(*whole_.train, dependences_, costs);
  const Bytes limit = memory_limit_;
  set_limits(std::vector<Bytes>(at(parts_), static_cast<Bytes>(static_cast<double>(limit) * kSlack)));
  const partition::CostModel cost(tasks_, machine_);
  const partition::Units units(tasks_, parts_);
  if (!partition::infeasibility_certificate(cost, units)) return;
  set_limits(std::vector<Bytes>(at(parts_), limit));
  throw std::runtime_error(where() + *partition::infeasibility_certificate(cost, units));
}

void Planner::time_alone() {
  alone_ = measure_op_times(*whole_.train, options_.backend, control(), memory_limit_);
  measure_update_time(options_.backend, control(), options_.optimizer,
                      parameter_elements(*whole_.train) / parts_, memory_limit_, alone_);
  if (options_.backend != kernels::Backend::cuda || !fits_one_rank()) return;
  const OpTimes& times = alone_.passed;
  const double one_by_one =
      std::accumulate(times.node_ms.begin(), times.node_ms.end(), 0.0) +
      times.update_ms_per_element * static_cast<double>(parameter_elements(*whole_.train));
  side_by_side_ = time_single_device_step(whole_, options_) / one_by_one;
}

PartitionPlan Planner::plan() {
  tasks_ = make_step_tasks(*whole_.train, dependences_, task_costs());
  place();
  summarise();
  return plan_;
}

// On GPUs predictions of parts have been 1 to 21 % short, those of small kernels most: they lack some of what tensors wait for.
PartitionPlan Planner::decide(double predicted_ms) {
  constexpr double kWorthwhile = 0.95;
  plan_.predicted_step_ms = predicted_ms;
  if (predicted_ms < kWorthwhile * plan_.one_rank_ms || !fits_one_rank()) return plan_;
  keep_whole();
  plan_.predicted_step_ms = plan_.one_rank_ms;
  return plan_;
}

// In the graph's own order, as one rank runs it: another may need more memory.
void Planner::keep_whole() {
  plan_ = {};
  tasks_ = make_step_tasks(*whole_.train, dependences_, task_costs());
  partition::PartitionResult whole;
  whole.placement =
      partition::Placement{parts_, std::vector<partition::DeviceIndex>(at(tasks_.node_count()), 0), {}};
  whole.simulation.order.resize(at(parts_));
  whole.simulation.order.front().resize(at(tasks_.node_count()));
  std::iota(whole.simulation.order.front().begin(), whole.simulation.order.front().end(), 0);
  take(std::move(whole));
  summarise();
}

void Planner::take_part(const PartitionPlan& plan, int part) {
  plan_ = plan;
  programs_ = make_rank_programs(dependences_, plan.placement.part_of, parts_, plan.placement.times);
  part_ = part_of_step(*whole_.train, programs_, part);
  arena_bytes_ = plan.parts[at(part)].arena_bytes;
}

StageTimes Planner::time_stage(const comm::Communicator& world) const {
  return convoy::app::time_stage(part_, options_.backend, control(), arena_bytes_, alone_.rounds, world);
}

PlacedTimes Planner::to_whole_step(const StageTimes& of_part, int part) {
  PlacedTimes placed;
  placed.alone.assign(whole_.train->graph.nodes.size(), 0);
  placed.slowdown = placed.alone;
  const std::vector<ProgramStep>& program = programs_.parts[at(part)];
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].action != ProgramStep::Action::run) continue;
    placed.alone[at(program[i].index)] = of_part.alone_ms[i];
    placed.slowdown[at(program[i].index)] = of_part.slowdown[i];
  }
  MeasuredOps beside;
  measure_update_time(options_.backend, control(), options_.optimizer, parameter_elements(part_),
                      arena_bytes_, beside);
  placed.update.assign(at(parts_), 0);
  placed.update[at(part)] = beside.worked.update_ms_per_element;
  return placed;
}

double Planner::predict(const PlacedTimes& times) {
  TaskCosts costs = task_costs();
  costs.times.node_ms = times.alone;
  tasks_ = make_step_tasks(*whole_.train, dependences_, costs);
  machine_profile_.slowdown = times.slowdown;
  machine_profile_.update_slowdown.clear();
  const double update = alone_.worked.update_ms_per_element;
  for (const double beside : times.update)
    machine_profile_.update_slowdown.push_back(update > 0 && beside > 0 ? beside / update : 1);
  const RankPrograms programs =
      make_rank_programs(dependences_, plan_.placement.part_of, parts_, plan_.placement.times);
  return simulate_programs(
      programs, costs_of_programs(machine_profile_, programs, tasks_, device_of_, whole_.train->descs));
}

const kernels::StepControl* Planner::control() const {
  return reinterpret_cast<const kernels::StepControl*>(control_memory_.data());
}

bool Planner::fits_one_rank() const { return memory_limit_ == 0 || one_rank_bytes_ <= memory_limit_; }

// Beside the parameters and their gradients.
int Planner::buffers_of_update() const { return kernels::optimizer_inputs(options_.optimizer) - 2; }

TaskCosts Planner::task_costs() const {
  return {alone_.passed, buffers_of_update(), machine_profile_.reduce_ms,
          machine_profile_.reduce_ms_per_byte};
}

std::int64_t Planner::arena_bytes(const CompiledSteps& steps) const {
  const auto scratch = [this](std::size_t bytes) { return groups_.replicas->scratch_bytes(bytes); };
  return MemoryPlan(steps, options_, scratch).total();
}

std::string Planner::where() const {
  return fmt::format("{} {} bytes, --partition {}: ",
                     memory_limit_ == options_.memory_limit
                         ? "--memory-limit"
                         : "15/16 of the free memory of the fullest device",
                     memory_limit_, parts_);
}

void Planner::set_limits(const std::vector<Bytes>& limits) {
  for (int part = 0; part < parts_; ++part) machine_.device(part).memory_limit = limits[at(part)];
}

partition::PartitionResult Planner::partition_tasks() const {
  const partition::CostModel cost(tasks_, machine_);
  partition::PartitionOptions options;
  options.seed = options_.seed;
  options.threads = 1;                            // the other ranks have the other cores
  options.time_limit = std::chrono::seconds(1);   // a job has one plan, of few attempts
  options.repair_time = std::chrono::seconds(1);  // other limits may be tried
  return partition::partition_graph(cost, options);
}

// The tasks tell a rank's memory to within its workspaces, the layout of its arena and what kernels do in place. So the
// limits that the partitioner gets are corrected by what the arenas come to.
void Planner::place() {
  if (memory_limit_ == 0) {
    take(partition_tasks());
    return;
  }
  constexpr int kTries = 12;
  const Bytes limit = memory_limit_;
  std::vector<Bytes> limits(at(parts_), limit);
  std::string reason;
  double most = 1;  // of the limit, asked for when the tasks alone seem not to fit
  for (int attempt = 0; attempt < kTries; ++attempt) {
    set_limits(limits);
    partition::PartitionResult result = partition_tasks();
    if (!result.placement) {
      if (reason.empty()) reason = result.reason;
      if (most > kSlack) break;
      most *= 1.08;
      limits.assign(at(parts_), static_cast<Bytes>(static_cast<double>(limit) * most));
      continue;
    }
    take(std::move(result));
    bool fits = true;
    std::int64_t largest = 0;
    for (int part = 0; part < parts_; ++part) {
      const Bytes excess = plan_.parts[at(part)].arena_bytes - limit;
      largest = std::max(largest, plan_.parts[at(part)].arena_bytes);
      if (excess <= 0) continue;
      fits = false;
      // From the peak that the partitioner saw, so that every correction bites.
      limits[at(part)] = std::min(limits[at(part)], peak_[at(part)]) - excess;
    }
    if (fits) return;
    reason = fmt::format("the best placement found needs {} bytes on one rank", largest);
  }
  throw std::runtime_error(where() + reason);
}

void Planner::take(partition::PartitionResult result) {
  if (!result.placement) throw std::runtime_error(fmt::format("--partition {}: {}", parts_, result.reason));
  const int nodes = static_cast<int>(whole_.train->graph.nodes.size());
  const partition::CostModel cost(tasks_, machine_);
  partition::Placement placement{parts_, result.placement->device_of,
                                 updates_last(result.simulation.order, nodes)};
  const partition::Simulation simulation = partition::simulate(cost, placement);
  plan_.placement.parts = parts_;
  plan_.placement.part_of.assign(placement.device_of.begin(), placement.device_of.begin() + nodes);
  plan_.placement.times = expected_times(simulation, placement.device_of, nodes);
  device_of_ = placement.device_of;
  plan_.one_rank_ms = ms(tasks_.total_time()) * side_by_side_;
  plan_.parts.assign(at(parts_), {});
  peak_.clear();
  for (int part = 0; part < parts_; ++part) {
    const CompiledSteps steps = stage_of_steps(whole_, plan_.placement, part, options_);
    plan_.parts[at(part)].arena_bytes = arena_bytes(steps);
    plan_.parts[at(part)].busy_ms = ms(simulation.use[part].busy);
    peak_.push_back(simulation.use[part].peak_bytes);
  }
}

void Planner::summarise() {
  plan_.one_rank_bytes = one_rank_bytes_;
  plan_.link_bytes_per_ms = std::numeric_limits<double>::max();
  for (int a = 0; a < parts_; ++a)
    for (int b = 0; b < a; ++b) {
      const LinkCost& link = machine_profile_.links[at(a)][at(b)];
      plan_.link_latency_ms = std::max(plan_.link_latency_ms, link.latency_ms);
      plan_.link_bytes_per_ms = std::min(plan_.link_bytes_per_ms, link.bytes_per_ms);
    }
  summarise_parts(*whole_.train,
                  make_rank_programs(dependences_, plan_.placement.part_of, parts_, plan_.placement.times),
                  plan_);
}

}  // namespace convoy::app
