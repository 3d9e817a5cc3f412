#include "app/model_parallel/plan.h"

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "app/execute/run_on_all_ranks.h"
#include "app/model_parallel/plan_message.h"
#include "app/model_parallel/planner.h"

namespace convoy::app {

PlannedStep plan_partition(const Network& network, const StepOptions& options,
                           const comm::Communicator& world, const RankGroups& groups, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  // 1. Measure the machine and compile the step.
  MachineProfile profile = measure_machine(world, groups, options.backend, threads);
  std::optional<CompiledSteps> whole;
  run_on_all_ranks(world, [&] { whole = compile_steps(network, options, groups); });

  // 2. Rank 0 decides the placement of the step.
  std::optional<PartitionPlanner> planner;
  MeasuredOps ops;
  double concurrency_ratio = 1;
  std::string message;
  run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    planner.emplace(*whole, options, groups, std::move(profile));
    ops = time_ops(*whole, options, groups, planner->memory_limit());
    // The search needs no device, so it runs while the device times the whole step.
    std::future<std::string> search =
        std::async(std::launch::async, [&] { return write_placement(planner->place(ops)); });
    if (planner->fits_one_rank()) concurrency_ratio = time_concurrency(*whole, options, ops.passed);
    message = search.get();
  });
  const StepPlacement placed = read_placement(world.broadcast(std::move(message), 0, "placement"));

  // 3. Time the stages on all ranks.
  const PlacedTimes of_stages = time_stages(*whole, placed, options, groups, world, ops.rounds);

  // 4. Rank 0 predicts the time of the step and decides whether to keep the stages.
  std::string chosen;
  run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    chosen = write_plan(planner->choose(concurrency_ratio, of_stages));
  });
  PartitionPlan plan = read_plan(world.broadcast(std::move(chosen), 0, "predicted step"));
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {std::move(plan), std::move(*whole)};
}

}  // namespace convoy::app
