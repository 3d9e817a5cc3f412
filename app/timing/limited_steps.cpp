#include "app/timing/limited_steps.h"

#include <optional>
#include <span>
#include <utility>

#include "app/compile/fit_memory.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/timing/full_batch_control.h"
#include "app/timing/op_times.h"

namespace convoy::app {

std::vector<double> node_ms_of(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups) {
  if (options.backend != kernels::Backend::cuda) return estimated_node_ms(*steps.train, options);
  const FullBatchControl control(steps, options, groups);
  const std::int64_t limit = options.memory_limit > 0 ? options.memory_limit : steps.train->activation_bytes;
  return measure_op_times(*steps.train, options.backend, control.get(), limit).passed.node_ms;
}

CompiledSteps compile_within_limit(const Network& network, const StepOptions& options,
                                   const comm::Communicator& ranks, const RankGroups& groups) {
  std::optional<CompiledSteps> steps;
  std::int32_t exceeds = 0;
  run_on_all_ranks(ranks, [&] {
    steps = compile_steps(network, options, groups);
    exceeds = exceeds_limit(*steps, options, *groups.replicas) ? 1 : 0;
  });
  if (ranks.all_reduce(exceeds, comm::ReduceOp::max, "memory limits") == 0) return std::move(*steps);
  std::vector<double> node_ms;
  run_on_all_ranks(ranks, [&] {
    if (ranks.rank() == 0) node_ms = node_ms_of(*steps, options, groups);
  });
  std::int64_t nodes[1] = {std::ssize(node_ms)};
  ranks.broadcast(std::span<std::int64_t>(nodes), 0, "number of operations");
  node_ms.resize(static_cast<std::size_t>(nodes[0]));
  ranks.broadcast(std::span<double>(node_ms), 0, "times of operations");
  run_on_all_ranks(ranks, [&] {
    // A rank with another kind of device may have another step.
    if (node_ms.size() != steps->train->graph.nodes.size())
      node_ms = estimated_node_ms(*steps->train, options);
    fit_into_limit(*steps, options, *groups.replicas, node_ms);
  });
  return std::move(*steps);
}

}  // namespace convoy::app
