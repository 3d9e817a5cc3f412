#include "app/compile/compiled_steps.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <string>

#include "app/model_parallel/stage_graph.h"

namespace convoy::app {

CompiledSteps compile_steps(std::optional<StepGraph> train, StepGraph evaluate, kernels::Backend backend,
                            const kernels::StepControl* control, int reuse_delay) {
  CompiledSteps steps;
  std::map<std::string, kernels::TensorDesc> layouts;
  if (train) {
    steps.train = compile_graph(std::move(*train), backend, control, {}, reuse_delay);
    layouts = parameter_layouts(*steps.train);
  }
  steps.evaluate = compile_graph(std::move(evaluate), backend, control, layouts, reuse_delay);
  return steps;
}

CompiledSteps part_of_steps(const CompiledSteps& whole, const StepPlacement& placement, int part,
                            int reuse_delay) {
  const StepGraph& train = whole.train->graph;
  if (placement.part_of.size() != train.nodes.size())
    throw std::runtime_error(fmt::format(
        "--partition: this rank compiles the step to {} operations, rank 0 to {}; ranks must have processors "
        "of one kind",
        train.nodes.size(), placement.part_of.size()));
  CompiledSteps result;
  result.train = part_of_step(
      *whole.train,
      make_rank_programs(find_dependences(train), placement.part_of, placement.parts, placement.times), part,
      reuse_delay);
  const StepGraph& evaluate = whole.evaluate.graph;
  result.evaluate = part_of_step(
      whole.evaluate,
      make_rank_programs(find_dependences(evaluate), place_evaluation(evaluate, train, placement.part_of),
                         placement.parts, sequential_times(evaluate)),
      part);
  return result;
}

}  // namespace convoy::app
