#include "app/compile/fit_memory.h"

#include <vector>

#include "app/compile/memory_plan.h"
#include "app/compile/step_graphs.h"
#include "app/graph/passes/recompute.h"

namespace convoy::app {

void fit_into_limit(CompiledSteps& steps, const Network& fused, const StepOptions& options,
                    const comm::Collectives& replicas) {
  const auto fits = [&] {
    const auto scratch = [&](std::size_t bytes) { return replicas.scratch_bytes(bytes); };
    return MemoryPlan(steps, options, scratch).total() <= options.memory_limit;
  };
  if (fits()) return;
  const StepGraph graph = make_step_graph(fused, options, replicas.size(), true);
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(graph);
  const auto layouts = parameter_layouts(*steps.train);
  const auto tight = [&](StepGraph changed) {
    return compile_graph(std::move(changed), options.backend, layouts, /*reuse_delay=*/0);
  };
  const auto recompute_first = [&](std::size_t count) {
    std::vector<TensorId> tensors;
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(candidates[i].tensor);
    StepGraph changed = graph;
    recompute(changed, tensors);
    steps.train = tight(std::move(changed));
  };
  if (reuse_delay_of(options) > 0) {
    steps.evaluate = tight(make_step_graph(fused, options, replicas.size(), false));
    recompute_first(0);
    if (fits()) return;
  }
  std::size_t few = 0, enough = candidates.size();  // recomputing only `few` candidates does not fit
  recompute_first(enough);
  if (!fits()) return;
  std::size_t planned = enough;
  while (enough - few > 1) {
    planned = (few + enough) / 2;
    recompute_first(planned);
    (fits() ? enough : few) = planned;
  }
  if (planned != enough) recompute_first(enough);
}

}  // namespace convoy::app
