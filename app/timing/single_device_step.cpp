#include "app/timing/single_device_step.h"

#include <utility>
#include <vector>

#include "app/execute/session.h"
#include "app/graph/passes/device_input.h"
#include "app/median.h"
#include "app/timing/step_times.h"
#include "comm/single_rank.h"

namespace convoy::app {
namespace {

// Returns the step without sums over ranks, and without the nodes that make images from stored
// pixels.
CompiledGraph alone_on_images(const CompiledGraph& whole, int reuse_delay) {
  StepGraph graph = whole.graph;
  std::vector<kernels::Kernel> kernels;
  graph.nodes.clear();
  for (std::size_t i = 0; i < whole.graph.nodes.size(); ++i) {
    const Node& node = whole.graph.nodes[i];
    if (node.is<AllReduce>()) continue;
    if (makes_stored_images(whole.graph, node)) {
      graph.images = node.outputs[0];  // the last of these nodes writes the images
      continue;
    }
    graph.nodes.push_back(node);
    kernels.push_back(whole.kernels[i]);
  }
  graph.transforms = -1;
  graph.tensors[static_cast<std::size_t>(graph.images)].role = TensorRole::images;
  return assign_buffers(std::move(graph), whole.descs, std::move(kernels), reuse_delay);
}

}  // namespace

double time_single_device_step(const CompiledSteps& steps, const StepOptions& options) {
  constexpr int kWarmUp = 3, kSteps = 9;
  StepOptions alone = options;
  alone.input = {};
  alone.initialise_all = false;
  alone.memory_limit = 0;  // the limit holds for the stages of a partition, not for this step
  comm::SingleRank rank;
  const int delay = reuse_delay_of(alone);
  CompiledSteps own(alone_on_images(*steps.train, delay), alone_on_images(steps.evaluate, delay), alone);
  Session session(std::move(own), alone, {&rank, &rank, nullptr});
  fill_batch(session, 1, 1);
  time_steps(session, kWarmUp);
  return median(time_steps(session, kSteps).ms);
}

}  // namespace convoy::app
