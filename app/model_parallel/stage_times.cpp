#include "app/model_parallel/stage_times.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "app/execute/run_on_all_ranks.h"
#include "app/timing/op_times.h"

namespace convoy::app {

StageTimes time_stage(const CompiledGraph& part, kernels::Backend backend,
                      const kernels::StepControl* control, std::int64_t arena_bytes, int rounds,
                      const comm::Communicator& world) {
  std::optional<OpTimer> timer;
  StepSamples warm_up, alone, beside;
  run_on_all_ranks(world, [&] { timer.emplace(part, backend, control, arena_bytes), timer->round(warm_up); });
  rounds = world.all_reduce(rounds, comm::ReduceOp::max, "rounds of timing");
  const int turns = world.all_reduce(world.local_size(), comm::ReduceOp::max, "ranks of a host");
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < turns; ++turn) {
      world.barrier("round of timing");
      if (turn == world.local_rank()) timer->round(alone);
    }
    world.barrier("round of timing");
    timer->round(beside);
  }
  const MeasuredOps of_alone = typical_times(alone), of_beside = typical_times(beside);
  StageTimes times{of_alone.passed.node_ms, {}};
  std::ranges::transform(of_beside.worked.node_ms, of_alone.worked.node_ms,
                         std::back_inserter(times.slowdown),
                         [](double slow, double fast) { return fast > 0 ? slow / fast : 1; });
  return times;
}

}  // namespace convoy::app
