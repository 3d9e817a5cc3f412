#include "app/timing/limited_steps.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "app/compile/fit_memory.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/timing/full_batch_control.h"
#include "app/timing/op_times.h"
#include "kernels/device/arena.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

std::vector<double> node_ms_of(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups) {
  if (options.backend != kernels::Backend::cuda) return estimated_node_ms(*steps.train, options);
  const FullBatchControl control(steps, options, groups);
  const std::int64_t limit = options.memory_limit > 0 ? options.memory_limit : steps.train->activation_bytes;
  return measure_op_times(*steps.train, options.backend, control.get(), limit).passed.node_ms;
}

namespace {

// Measures the rates of copies to and from host memory. Takes the fastest of some copies, because
// other work has disturbed the slower ones.
partition::HostLink measured_link(const StepOptions& options) {
  partition::HostLink link = estimated_link(options);
  constexpr std::size_t kBytes = 64 << 20;
  constexpr int kCopies = 5;
  const kernels::Arena device(options.backend, kBytes);
  const kernels::Arena host = kernels::Arena::for_copies(options.backend, kBytes);
  const auto bytes_ms = [&](const auto& copy) {
    using Clock = std::chrono::steady_clock;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= kCopies; ++i) {
      const auto start = Clock::now();
      copy();
      if (i > 0)
        least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    return static_cast<double>(kBytes) / least;
  };
  link.out_bytes_ms =
      bytes_ms([&] { kernels::copy_out(options.backend, host.data(), device.data(), kBytes); });
  link.back_bytes_ms =
      bytes_ms([&] { kernels::copy_in(options.backend, device.data(), host.data(), kBytes); });
  return link;
}

}  // namespace

partition::HostLink host_link_of(const StepOptions& options) {
  const bool device = options.backend == kernels::Backend::cuda;
  const std::int64_t bytes = options.members.size() > 1 ? 0 : options.host_memory;
  partition::HostLink link = device && bytes > 0 ? measured_link(options) : estimated_link(options);
  link.host_bytes = bytes;
  return link;
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
  partition::HostLink link;
  run_on_all_ranks(ranks, [&] { link = host_link_of(options); });
  for (double* const rate : {&link.out_bytes_ms, &link.back_bytes_ms})
    *rate = static_cast<double>(
        ranks.all_reduce(static_cast<std::int64_t>(*rate), comm::ReduceOp::min, "rates of links"));
  run_on_all_ranks(ranks, [&] {
    // A rank with another kind of GPU may have a step with other nodes, for which rank 0 has no
    // times.
    if (node_ms.size() != steps->train->graph.nodes.size())
      node_ms = estimated_node_ms(*steps->train, options);
    fit_into_limit(*steps, options, *groups.replicas, node_ms, link);
  });
  return std::move(*steps);
}

}  // namespace convoy::app
