// What a step's program says to the other ranks: gradient buckets, sums of statistics and of the metrics.
#include <algorithm>
#include <chrono>

#include "app/execute/session.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

// Gradients are sent while backward goes on: a bucket starts after the node that finishes the last of its segments.
void Session::append_finished_buckets(Program& program, const CompiledGraph& compiled, std::size_t node) {
  const auto& outputs = compiled.graph.nodes[node].outputs;
  for (int bucket = 0; bucket < std::ssize(buckets_->buckets()); ++bucket) {
    const auto last =
        static_cast<std::size_t>(buckets_->buckets()[static_cast<std::size_t>(bucket)].last_segment);
    const auto parameter = static_cast<std::size_t>(memory_->segment_parameter()[last]);
    const TensorId gradient = compiled.graph.parameters[parameter].gradient;
    if (std::ranges::find(outputs, gradient) == outputs.end()) continue;
    const comm::Bucket& slice = buckets_->buckets()[static_cast<std::size_t>(bucket)];
    const MemoryRange range{memory_->flat_gradients() + slice.offset,
                            slice.count * std::int64_t{sizeof(float)}};
    if (options_.accumulate) append_accumulation(program, range, true);
    Instruction start{
        compiled.graph.nodes[node].layer, "start_bucket",
        [buckets = buckets_.get(), bucket](kernels::Stream stream) { buckets->start(bucket, stream); }};
    start.writes.push_back(range);
    start.follow = [buckets = buckets_.get(), bucket](kernels::Stream stream) {
      buckets->follow(bucket, stream);
    };
    program.add(std::move(start));
  }
}

void Session::append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer,
                                double* data, std::int64_t count) {
  all_reduces_.push_back(ranks.prepare_all_reduce(data, count, kernels::DType::f64, layer));
  Instruction instruction{layer, "all_reduce", nullptr};
  instruction.writes.push_back({data, count * std::int64_t{sizeof(double)}});
  append_communication(program, std::move(instruction),
                       [operation = all_reduces_.back().get()](kernels::Stream stream) {
                         operation->start(stream);
                         operation->wait(stream);
                       });
}

void Session::append_communication(Program& program, Instruction instruction,
                                   std::function<void(kernels::Stream)> action) {
  instruction.communicates = true;
  instruction.launch = [this, action = std::move(action)](kernels::Stream stream) {
    const auto start = std::chrono::steady_clock::now();
    action(stream);
    exposed_ms_ +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  program.add(std::move(instruction));
}

// A device sums the loss over the ranks while backward goes on; a host would have to be asked to move the sum on, and parts have
// their loss at different times.
void Session::append_early_metrics(Program& program, const CompiledGraph& compiled, std::size_t node) {
  if (options_.backend != kernels::Backend::cuda || transfers_ != nullptr) return;
  const auto& outputs = compiled.graph.nodes[node].outputs;
  if (std::ranges::find(outputs, compiled.graph.metrics) == outputs.end()) return;
  early_metrics_ = groups_.world->prepare_all_reduce(memory_->metrics(), ModelMemory::kMetrics,
                                                     kernels::DType::f64, "metrics");
  Instruction start{"metrics", "start_all_reduce",
                    [this](kernels::Stream stream) { early_metrics_->start(stream); }};
  start.writes.push_back(metrics_range());
  start.follow = [this](kernels::Stream stream) { early_metrics_->follow(stream); };
  program.add(std::move(start));
}

// A part that has no labels adds nothing to the sums; whether it wants to stop, behind them, is its own to say.
void Session::append_no_loss(Program& program) {
  constexpr std::int64_t kSums = ModelMemory::kMetrics - 1;
  Instruction nothing{"metrics", "no_loss", [this](kernels::Stream stream) {
                        kernels::clear(options_.backend, memory_->metrics(), kSums * sizeof(double), stream);
                      }};
  nothing.writes = {{memory_->metrics(), kSums * std::int64_t{sizeof(double)}}};
  program.add(std::move(nothing));
}

void Session::append_metrics(Program& program) {
  if (groups_.world->size() == 1) return;
  if (early_metrics_ == nullptr || &program != &train_program_)
    return append_all_reduce(program, *groups_.world, "metrics", memory_->metrics(), ModelMemory::kMetrics);
  Instruction wait{"metrics", "wait_all_reduce", nullptr};
  wait.writes.push_back(metrics_range());
  append_communication(program, std::move(wait),
                       [this](kernels::Stream stream) { early_metrics_->wait(stream); });
}

}  // namespace convoy::app
