// Tests that every rank times its own stage (its part of a partitioned step), alone and while the
// other ranks run their stages.
#include <gtest/gtest.h>

#include <cmath>

#include "app/graph/graph_builder.h"
#include "app/model_parallel/stage_times.h"
#include "tests/app/model/tiny_networks.h"
#include "tests/mpi/world.h"

namespace convoy::app {
namespace {

// The ranks ask for different numbers of rounds. All must run the largest number, or some would
// wait forever.
TEST(StageTimes, CoverEveryNodeThatComputes) {
  kernels::StepControl control;
  GraphOptions options;
  options.ranks = test::world().size();
  const CompiledGraph stage = compile_graph(build_step_graph(every_op(), options), kernels::Backend::cpu);
  const StageTimes times =
      time_stage(stage, kernels::Backend::cpu, &control, 0, 2 + 4 * test::world().rank(), test::world());
  EXPECT_EQ(test::world().all_reduce(1, comm::ReduceOp::sum, "ranks that came through"),
            test::world().size());
  ASSERT_EQ(times.alone_ms.size(), stage.graph.nodes.size());
  ASSERT_EQ(times.slowdown.size(), stage.graph.nodes.size());
  for (std::size_t node = 0; node < stage.graph.nodes.size(); ++node) {
    const bool computes = !stage.graph.nodes[node].is<AllReduce>();
    EXPECT_EQ(times.alone_ms[node] > 0, computes) << stage.graph.nodes[node].layer;
    EXPECT_TRUE(std::isfinite(times.slowdown[node]) && times.slowdown[node] > 0);
  }
}

}  // namespace
}  // namespace convoy::app
