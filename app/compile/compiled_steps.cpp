#include "app/compile/compiled_steps.h"

#include <map>
#include <string>
#include <utility>

#include "app/compile/early_updates.h"
#include "app/compile/step_graphs.h"
#include "kernels/device/tuning.h"

namespace convoy::app {

CompiledSteps::CompiledSteps(std::optional<CompiledGraph> train_step, CompiledGraph evaluate_step,
                             const StepOptions& options)
    : train(std::move(train_step)), evaluate(std::move(evaluate_step)), flat(main()) {
  if (train) update = make_update_kernels(options, flat);
}

// Returns how many nodes must pass before a freed buffer is reused. With a fixed number of lanes, 4
// is the fastest of 1, 2, 4, 8 and 16 on an H200. With --lanes auto, 16 is faster.
int reuse_delay_of(const StepOptions& options) {
  if (options.backend != kernels::Backend::cuda || options.lanes == 1) return 0;
  return options.lanes == kAutoLanes ? kLongReuseDelay : kReuseDelay;
}

int stage_reuse_delay(const StepOptions& options) {
  return options.memory_limit > 0 ? 0 : reuse_delay_of(options);
}

CompiledSteps compile_graphs(std::optional<StepGraph> train, StepGraph evaluate, const StepOptions& options,
                             bool early_updates) {
  const int delay = reuse_delay_of(options);
  std::optional<CompiledGraph> compiled;
  std::map<std::string, kernels::TensorDesc> layouts;
  if (train) {
    compiled = compile_graph(std::move(*train), options.backend, {}, delay);
    if (early_updates) compiled = with_early_updates(std::move(*compiled), options, delay);
    layouts = parameter_layouts(*compiled);
  }
  return {std::move(compiled), compile_graph(std::move(evaluate), options.backend, layouts, delay), options};
}

CompiledSteps compile_steps(const Network& network, const StepOptions& options, const RankGroups& groups) {
  using kernels::tuning::Mode;
  const bool tuned = options.backend == kernels::Backend::cuda && !options.tuning_file.empty();
  if (tuned)
    kernels::tuning::use(options.tuning_file,
                         groups.world->size() == 1 && !options.read_tuning_only ? Mode::measure : Mode::read);
  const Network fused = fuse(network);
  const int replicas = groups.replicas->size();
  std::optional<StepGraph> train;
  if (options.training) train = make_step_graph(fused, options, replicas, true);
  CompiledSteps steps = compile_graphs(std::move(train), make_step_graph(fused, options, replicas, false),
                                       options, groups.stages == nullptr && updates_early(options, replicas));
  if (tuned) kernels::tuning::save();
  return steps;
}

}  // namespace convoy::app
