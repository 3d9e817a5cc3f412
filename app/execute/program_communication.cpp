// Appends the instructions that communicate with other ranks: sums of gradient buckets
// (comm/buckets.h), and sums of statistics and metrics.
#include <algorithm>
#include <chrono>

#include "app/execute/program_builder.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

// Returns whether a node after this one changes the tensor.
bool changes_later(const CompiledGraph& compiled, std::size_t node, TensorId tensor) {
  const auto& nodes = compiled.graph.nodes;
  return std::any_of(
      nodes.begin() + static_cast<std::ptrdiff_t>(node) + 1, nodes.end(),
      [&](const Node& later) { return std::ranges::find(later.outputs, tensor) != later.outputs.end(); });
}

}  // namespace

// Starts the sum of each gradient bucket that is complete after this node. So gradients are summed
// over the ranks while backward goes on.
void ProgramBuilder::append_finished_buckets(Program& program, const CompiledGraph& compiled,
                                             std::size_t node) {
  const auto& outputs = compiled.graph.nodes[node].outputs;
  for (int bucket = 0; bucket < std::ssize(communication_.buckets->buckets()); ++bucket) {
    const auto last = static_cast<std::size_t>(
        communication_.buckets->buckets()[static_cast<std::size_t>(bucket)].last_segment);
    const auto parameter = static_cast<std::size_t>(memory_.segment_parameter()[last]);
    const TensorId gradient = compiled.graph.parameters[parameter].gradient;
    if (std::ranges::find(outputs, gradient) == outputs.end() || changes_later(compiled, node, gradient))
      continue;
    const comm::Bucket& slice = communication_.buckets->buckets()[static_cast<std::size_t>(bucket)];
    const MemoryRange range{memory_.flat_gradients() + slice.offset,
                            slice.count * std::int64_t{sizeof(float)}};
    if (options_.accumulate) append_accumulation(program, range, true);
    Instruction start{compiled.graph.nodes[node].layer, "start_bucket",
                      [buckets = communication_.buckets.get(), bucket](kernels::Stream stream) {
                        buckets->start(bucket, stream);
                      }};
    start.buckets = BucketAction::start;
    start.writes.push_back(range);
    start.follow = [buckets = communication_.buckets.get(), bucket](kernels::Stream stream) {
      buckets->follow(bucket, stream);
    };
    program.add(std::move(start));
  }
}

void ProgramBuilder::append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer,
                                       double* data, std::int64_t count) {
  communication_.all_reduces.push_back(ranks.prepare_all_reduce(data, count, kernels::DType::f64, layer));
  Instruction instruction{layer, "all_reduce", nullptr};
  instruction.writes.push_back({data, count * std::int64_t{sizeof(double)}});
  append_communication(program, std::move(instruction),
                       [operation = communication_.all_reduces.back().get()](kernels::Stream stream) {
                         operation->start(stream);
                         operation->wait(stream);
                       });
}

void ProgramBuilder::append_communication(Program& program, Instruction instruction,
                                          std::function<void(kernels::Stream)> action) {
  instruction.communicates = true;
  instruction.launch = [&exposed_ms = communication_.exposed_ms,
                        action = std::move(action)](kernels::Stream stream) {
    const auto start = std::chrono::steady_clock::now();
    action(stream);
    exposed_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  program.add(std::move(instruction));
}

// Starts the sum of the metrics over the ranks while backward goes on. Only an unpartitioned step
// on a GPU does so. On a host the computing thread would have to work on the sum, and the stages of
// a partitioned step have their metrics at different times.
void ProgramBuilder::append_early_metrics(Program& program, const CompiledGraph& compiled, std::size_t node) {
  if (options_.backend != kernels::Backend::cuda || partitioned()) return;
  const auto& outputs = compiled.graph.nodes[node].outputs;
  if (std::ranges::find(outputs, compiled.graph.metrics) == outputs.end()) return;
  communication_.early_metrics = groups_.world->prepare_all_reduce(memory_.metrics(), ModelMemory::kMetrics,
                                                                   kernels::DType::f64, "metrics");
  comm::PreparedOperation* const sum = communication_.early_metrics.get();
  Instruction start{"metrics", "start_all_reduce", [sum](kernels::Stream stream) { sum->start(stream); }};
  start.writes.push_back(metrics_range());
  start.follow = [sum](kernels::Stream stream) { sum->follow(stream); };
  program.add(std::move(start));
}

// Sets this rank's metrics to zero in a stage without labels, which computes no loss. The last
// value of the metrics says whether this rank wants to stop, so it stays.
void ProgramBuilder::append_no_loss(Program& program) {
  constexpr std::int64_t kSums = ModelMemory::kMetrics - 1;
  Instruction nothing{"metrics", "no_loss",
                      [backend = options_.backend, metrics = memory_.metrics()](kernels::Stream stream) {
                        kernels::clear(backend, metrics, kSums * sizeof(double), stream);
                      }};
  nothing.writes = {{memory_.metrics(), kSums * std::int64_t{sizeof(double)}}};
  program.add(std::move(nothing));
}

void ProgramBuilder::append_metrics(Program& program, bool summed_early) {
  if (groups_.world->size() == 1) return;
  if (!summed_early)
    return append_all_reduce(program, *groups_.world, "metrics", memory_.metrics(), ModelMemory::kMetrics);
  Instruction wait{"metrics", "wait_all_reduce", nullptr};
  wait.writes.push_back(metrics_range());
  append_communication(
      program, std::move(wait),
      [sum = communication_.early_metrics.get()](kernels::Stream stream) { sum->wait(stream); });
}

}  // namespace convoy::app
