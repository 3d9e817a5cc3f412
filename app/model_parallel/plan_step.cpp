#include "app/model_parallel/plan_step.h"

#include <chrono>
#include <optional>
#include <utility>

#include "app/execute/run_on_all_ranks.h"
#include "app/model_parallel/plan_message.h"
#include "app/model_parallel/planner.h"

namespace convoy::app {
namespace {

// Collective over `world`.
PlacedTimes time_parts(Planner& planner, const PartitionPlan& plan, const comm::Communicator& world,
                       const RankGroups& groups, kernels::Backend backend) {
  PlacedTimes times;
  run_on_all_ranks(world, [&] { planner.take_part(plan, groups.parts->rank()); });
  const StageTimes own = planner.time_stage(world);
  run_on_all_ranks(world, [&] { times = planner.to_whole_step(own, groups.parts->rank()); });
  for (std::vector<double>* of : {&times.alone, &times.slowdown, &times.update})
    sum_values(*groups.parts, backend, *of, "times of the parts");
  return times;
}

}  // namespace

PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  MachineProfile machine_profile = measure_machine(world, groups, options.backend, threads);
  std::optional<Planner> planner;
  std::string message;
  run_on_all_ranks(world, [&] {
    planner.emplace(compile_steps(network, options, groups), options, groups, std::move(machine_profile));
    if (world.rank() > 0) return;
    planner->refuse_impossible();
    planner->time_alone();
    message = write_plan(planner->plan());
  });
  const PartitionPlan parts = read_plan(world.broadcast(std::move(message), 0, "partition plan"));
  const PlacedTimes times = time_parts(*planner, parts, world, groups, options.backend);
  run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    PartitionPlan plan = planner->decide(planner->predict(times));
    plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    message = write_plan(plan);
  });
  return {read_plan(world.broadcast(std::move(message), 0, "predicted step")), planner->whole()};
}

}  // namespace convoy::app
