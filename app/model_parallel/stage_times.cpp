#include "app/model_parallel/stage_times.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "app/execute/run_on_all_ranks.h"
#include "app/timing/full_batch_control.h"
#include "app/timing/link_costs.h"
#include "app/timing/single_device_step.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

MeasuredOps time_ops(const CompiledSteps& whole, const StepOptions& options, const RankGroups& groups,
                     std::int64_t memory_limit) {
  const FullBatchControl control(whole, options, groups);
  MeasuredOps ops = measure_op_times(*whole.train, options.backend, control.get(), memory_limit);
  measure_update_time(options.backend, control.get(), options.optimizer,
                      parameter_elements(*whole.train) / groups.stages->size(), memory_limit, ops);
  return ops;
}

double time_concurrency(const CompiledSteps& whole, const StepOptions& options, const OpTimes& ops) {
  if (options.backend != kernels::Backend::cuda) return 1;
  const double one_by_one = std::accumulate(ops.node_ms.begin(), ops.node_ms.end(), 0.0) +
                            ops.update_ms_per_element * static_cast<double>(parameter_elements(*whole.train));
  return time_single_device_step(whole, options) / one_by_one;
}

StageTimes time_stage(const CompiledGraph& stage, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world) {
  std::optional<OpTimer> timer;
  StepSamples warm_up, alone, together;
  run_on_all_ranks(world,
                   [&] { timer.emplace(stage, backend, control, arena_bytes), timer->round(warm_up); });
  rounds = world.all_reduce(rounds, comm::ReduceOp::max, "rounds of timing");
  const int turns = world.all_reduce(world.local_size(), comm::ReduceOp::max, "ranks of a host");
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < turns; ++turn) {
      world.barrier("round of timing");
      if (turn == world.local_rank()) timer->round(alone);
    }
    world.barrier("round of timing");
    timer->round(together);
  }
  const MeasuredOps of_alone = typical_times(alone), of_together = typical_times(together);
  StageTimes times{of_alone.passed.node_ms, {}};
  std::ranges::transform(of_together.worked.node_ms, of_alone.worked.node_ms,
                         std::back_inserter(times.slowdown),
                         [](double slow, double fast) { return fast > 0 ? slow / fast : 1; });
  return times;
}

PlacedTimes time_stages(const CompiledSteps& whole, const StepPlacement& placement,
                        const StepOptions& options, const RankGroups& groups, const comm::Communicator& world,
                        int rounds) {
  const int stage = groups.stages->rank();
  const FullBatchControl control(whole, options, groups);
  const std::int64_t arena_bytes = placement.arena_bytes[at(stage)];
  StagePrograms programs;
  CompiledGraph own;
  run_on_all_ranks(world, [&] {
    programs = make_stage_programs(find_dependences(whole.train->graph), placement.stage_of, placement.stages,
                                   placement.times);
    own = stage_of_step(*whole.train, programs, stage);
  });
  const StageTimes measured = time_stage(own, options.backend, control.get(), arena_bytes, rounds, world);
  PlacedTimes placed;
  run_on_all_ranks(world, [&] {
    placed.alone.assign(whole.train->graph.nodes.size(), 0);
    placed.slowdown = placed.alone;
    const std::vector<ProgramStep>& program = programs.stages[at(stage)];
    for (std::size_t i = 0; i < program.size(); ++i) {
      if (program[i].action != ProgramStep::Action::run) continue;
      placed.alone[at(program[i].index)] = measured.alone_ms[i];
      placed.slowdown[at(program[i].index)] = measured.slowdown[i];
    }
    MeasuredOps together;
    measure_update_time(options.backend, control.get(), options.optimizer, parameter_elements(own),
                        arena_bytes, together);
    placed.update.assign(at(placement.stages), 0);
    placed.update[at(stage)] = together.worked.update_ms_per_element;
  });
  for (std::vector<double>* values : {&placed.alone, &placed.slowdown, &placed.update})
    sum_values(*groups.stages, options.backend, *values, "times of the stages");
  return placed;
}

}  // namespace convoy::app
