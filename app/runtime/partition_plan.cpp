#include "app/runtime/partition_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "app/runtime/agreement.h"
#include "app/runtime/link_costs.h"
#include "app/runtime/partition_message.h"
#include "app/runtime/partitioned_graph.h"
#include "app/runtime/step_tasks.h"
#include "comm/topology.h"
#include "partition/memory/overflow.h"
#include "partition/partition.h"
#include "partition/simulation/shared_processors.h"

namespace convoy::app {
namespace {

using partition::Bytes;
using partition::NodeIndex;
std::size_t at(int i) { return static_cast<std::size_t>(i); }
double ms(partition::Nanoseconds time) { return static_cast<double>(time) * 1e-6; }

// What is known of the ranks before anything is planned.
struct Surroundings {
  std::vector<std::vector<LinkCost>> links;  // between the parts
  double reduce_ms = 0, reduce_ms_per_byte = 0;
  partition::SharedProcessors processors;
};

// Ranks of one host with the same cores share them, those of other replicas, which do the same at the same time, too.
partition::SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int parts,
                                             int threads) {
  partition::SharedProcessors shared;
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (int part = 0; part < parts; ++part) {
    const std::pair key(ranks[at(part)].host, ranks[at(part)].cores);
    const auto same = [&](const comm::RankPlacement& rank) {
      return std::pair(rank.host, rank.cores) == key;
    };
    const auto found = std::ranges::find(groups, key);
    shared.group_of.push_back(static_cast<int>(found - groups.begin()));
    if (found != groups.end()) continue;
    groups.push_back(key);
    const auto members = std::count_if(ranks.begin(), ranks.end(), same);
    const auto of_replica = std::count_if(ranks.begin(), ranks.begin() + parts, same);
    const double busy_cores = std::min<double>(threads, static_cast<double>(key.second.size()));
    shared.processors.push_back(static_cast<double>(key.second.size()) / busy_cores *
                                static_cast<double>(of_replica) / static_cast<double>(members));
  }
  return shared;
}

Surroundings look_around(const comm::Communicator& world, const RankGroups& groups, int threads) {
  Surroundings surroundings;
  surroundings.links = measure_links(*groups.parts);
  if (groups.replicas->size() > 1) {
    const LinkCost link = measure_links(*groups.replicas)[0][1];
    surroundings.reduce_ms = 2 * link.latency_ms;
    surroundings.reduce_ms_per_byte = 2 / link.bytes_per_ms;
  }
  const std::vector<comm::RankPlacement> ranks = comm::gather_placement(world);
  if (world.rank() == 0) surroundings.processors = share_processors(ranks, groups.parts->size(), threads);
  return surroundings;
}

partition::Machine describe_machine(const std::vector<std::vector<LinkCost>>& links) {
  const int parts = static_cast<int>(links.size());
  partition::Machine machine = partition::Machine::uniform(parts, {});
  for (int a = 0; a < parts; ++a)
    for (int b = 0; b < parts; ++b)
      if (a != b)
        machine.set_link(a, b,
                         {static_cast<partition::Nanoseconds>(links[at(a)][at(b)].latency_ms * 1e6),
                          links[at(a)][at(b)].bytes_per_ms * 1e-6});
  return machine;
}

class Planner {
 public:
  Planner(const Network& network, const SessionOptions& options, const RankGroups& groups,
          const Surroundings& surroundings)
      : options_(options),
        parts_(groups.parts->size()),
        surroundings_(surroundings),
        machine_(describe_machine(surroundings.links)) {
    control_.seed = options.seed;
    control_.valid = static_cast<std::int32_t>(network.shape(0)[0]);
    control_.global_valid = control_.valid * groups.replicas->size();
    control_.learning_rate = 1e-3f;
    whole_ = compile_session(network, options, groups.replicas->size(), &control_);
    dependences_ = find_dependences(whole_.train->graph);
  }

  PartitionPlan run() {
    refuse_impossible();
    TaskCosts costs;
    costs.times = measure_op_times(*whole_.train, options_.backend, control_, options_.optimizer,
                                   options_.memory_limit);
    costs.optimizer_states = optimizer_states();
    costs.reduce_ms = surroundings_.reduce_ms;
    costs.reduce_ms_per_byte = surroundings_.reduce_ms_per_byte;
    tasks_ = make_step_tasks(*whole_.train, dependences_, costs);
    place();
    summarise();
    return std::move(plan_);
  }

 private:
  int optimizer_states() const { return kernels::optimizer_states(options_.optimizer); }
  std::int64_t arena_bytes(const CompiledSteps& steps) const {
    MemoryRequest request;
    request.optimizer_states = optimizer_states();
    const PreparedGraph* train = steps.train ? &*steps.train : nullptr;
    return total_bytes(
        plan_memory(train, steps.evaluate, FlatLayout(train != nullptr ? *train : steps.evaluate), request));
  }
  std::string where() const {
    return fmt::format("--memory-limit {} bytes, --partition {}: ", options_.memory_limit, parts_);
  }

  // What memory alone rules out needs no clock: an operation that no rank can hold would not even be timed.
  void refuse_impossible() {
    if (options_.memory_limit == 0) return;
    TaskCosts costs;
    costs.times.node_ms.assign(whole_.train->graph.nodes.size(), 1);
    costs.optimizer_states = optimizer_states();
    tasks_ = make_step_tasks(*whole_.train, dependences_, costs);
    const Bytes limit = options_.memory_limit;
    set_limits(std::vector<Bytes>(at(parts_), static_cast<Bytes>(static_cast<double>(limit) * kSlack)));
    const partition::CostModel cost(tasks_, machine_);
    const partition::Units units(tasks_, parts_);
    if (!partition::infeasibility_certificate(cost, units)) return;
    set_limits(std::vector<Bytes>(at(parts_), limit));
    throw std::runtime_error(where() + *partition::infeasibility_certificate(cost, units));
  }

  void set_limits(const std::vector<Bytes>& limits) {
    for (int part = 0; part < parts_; ++part) machine_.device(part).memory_limit = limits[at(part)];
  }

  partition::PartitionResult partition_tasks() const {
    const partition::CostModel cost(tasks_, machine_);
    partition::PartitionOptions options;
    options.seed = options_.seed;
    options.threads = 1;  // the other ranks have the other cores
    return partition::partition_graph(cost, options);
  }

  // The tasks tell a rank's memory to within its workspaces, the layout of its arena and what kernels do in place. So the
  // limits that the partitioner gets are corrected by what the arenas come to.
  void place() {
    if (options_.memory_limit == 0) {
      take(partition_tasks());
      return;
    }
    constexpr int kTries = 12;
    const Bytes limit = options_.memory_limit;
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

  void take(partition::PartitionResult result) {
    if (!result.placement) throw std::runtime_error(fmt::format("--partition {}: {}", parts_, result.reason));
    const int nodes = static_cast<int>(whole_.train->graph.nodes.size());
    const partition::CostModel cost(tasks_, machine_);
    partition::Placement placement{parts_, result.placement->device_of,
                                   updates_last(result.simulation.order)};
    const partition::Simulation simulation = partition::simulate(cost, placement);
    plan_.placement.parts = parts_;
    plan_.placement.part_of.assign(placement.device_of.begin(), placement.device_of.begin() + nodes);
    plan_.placement.times = times_of(simulation, placement.device_of);
    plan_.predicted_step_ms = ms(partition::simulate_shared(cost, placement, surroundings_.processors));
    plan_.one_rank_ms = ms(tasks_.total_time());
    plan_.parts.assign(at(parts_), {});
    peak_.clear();
    for (int part = 0; part < parts_; ++part) {
      const CompiledSteps steps = part_of_steps(whole_, plan_.placement, part);
      plan_.parts[at(part)].arena_bytes = arena_bytes(steps);
      plan_.parts[at(part)].busy_ms = ms(simulation.use[part].busy);
      peak_.push_back(simulation.use[part].peak_bytes);
    }
  }

  // As the programs have it: one optimizer kernel at the end.
  std::vector<std::vector<NodeIndex>> updates_last(std::vector<std::vector<NodeIndex>> order) const {
    const auto nodes = static_cast<NodeIndex>(whole_.train->graph.nodes.size());
    for (auto& of_part : order)
      std::stable_partition(of_part.begin(), of_part.end(), [&](NodeIndex task) { return task < nodes; });
    return order;
  }

  ExpectedTimes times_of(const partition::Simulation& simulation,
                         const std::vector<partition::DeviceIndex>& device_of) const {
    const auto nodes = static_cast<std::ptrdiff_t>(whole_.train->graph.nodes.size());
    ExpectedTimes times;
    times.start.assign(simulation.start.begin(), simulation.start.begin() + nodes);
    times.finish.assign(simulation.finish.begin(), simulation.finish.begin() + nodes);
    for (const partition::Transfer& transfer : simulation.transfers) {
      // The receiver takes it between two operations.
      partition::Nanoseconds released = transfer.arrival;
      for (std::ptrdiff_t node = 0; node < nodes; ++node)
        if (device_of[static_cast<std::size_t>(node)] == transfer.to &&
            simulation.start[static_cast<std::size_t>(node)] <= transfer.arrival)
          released = std::max(released, simulation.finish[static_cast<std::size_t>(node)]);
      times.released[{transfer.producer, transfer.to}] = released;
    }
    return times;
  }

  void summarise() {
    plan_.one_rank_bytes = arena_bytes(whole_);
    const StepGraph& graph = whole_.train->graph;
    const RankPrograms programs =
        make_rank_programs(dependences_, plan_.placement.part_of, parts_, plan_.placement.times);
    plan_.transfers = static_cast<int>(programs.transfers.size());
    for (const CutTensor& cut : programs.transfers)
      plan_.cut_bytes += static_cast<std::int64_t>(whole_.train->descs[at(cut.tensor)].bytes());
    for (int part = 0; part < parts_; ++part) {
      PartSummary& summary = plan_.parts[at(part)];
      const PreparedGraph steps = part_of_step(*whole_.train, programs, part);
      for (const TrainableParameter& parameter : steps.graph.parameters)
        summary.parameters += parameter.spec.shape.elements();
      std::vector<std::string> layers;  // in the order of the network
      for (int node = 0; node < std::ssize(graph.nodes); ++node) {
        if (plan_.placement.part_of[at(node)] != part) continue;
        ++summary.operations;
        const Node& of = graph.nodes[at(node)];
        if (of.phase == Phase::forward && (layers.empty() || layers.back() != of.layer))
          layers.push_back(of.layer);
      }
      if (!layers.empty()) summary.layers = layers.front();
      if (layers.size() > 1) summary.layers += " … " + layers.back();
    }
  }

  // Kernels that work in place need less than their tasks tell: at most a third.
  static constexpr double kSlack = 1.5;

  const SessionOptions& options_;
  const int parts_;
  const Surroundings& surroundings_;
  partition::Machine machine_;
  kernels::StepControl control_;
  CompiledSteps whole_;
  StepDependences dependences_;
  partition::TaskGraph tasks_;
  PartitionPlan plan_;
  std::vector<Bytes> peak_;  // of every part, as the simulator has it
};

}  // namespace

PartitionPlan plan_partition(const Network& network, const SessionOptions& options,
                             const comm::Communicator& world, const RankGroups& groups, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  const Surroundings surroundings = look_around(world, groups, threads);
  std::string message;
  together(world, [&] {
    if (world.rank() != 0) return;
    PartitionPlan plan = Planner(network, options, groups, surroundings).run();
    plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    message = write_plan(plan);
  });
  return read_plan(world.broadcast(std::move(message), 0, "partition plan"));
}

}  // namespace convoy::app
