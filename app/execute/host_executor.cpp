#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "app/execute/executor.h"

namespace convoy::app {

namespace {

class HostExecutor final : public Executor {
 public:
  HostExecutor(const ModelMemory& memory, HostExecution execution)
      : memory_(memory), execution_(std::move(execution)) {}

  kernels::StepControl& control() override { return *execution_.control; }
  std::span<std::int32_t> labels() override {
    return {memory_.labels(), memory_.has_labels() ? static_cast<std::size_t>(memory_.capacity()) : 0};
  }

  void load(data::BatchLease lease, std::int64_t) override {
    const data::Batch& batch = *lease;
    if (memory_.has_images()) std::memcpy(memory_.images(), batch.images, memory_.images_desc().bytes());
    if (memory_.has_labels()) std::copy_n(batch.labels, batch.capacity, memory_.labels());
    if (memory_.has_mix()) *memory_.mix() = batch.mix;
    control().valid = batch.valid;
    control().global_valid = batch.global_valid;
    control().first_sample = static_cast<std::uint64_t>(batch.first);
  }

  void start(const Program& program, bool stop_requested) override {
    if (started_) throw std::logic_error("a step was started before the last one was finished");
    const double exposed = *execution_.exposed_ms;
    memory_.metrics()[4] = stop_requested ? 1 : 0;
    for (const Instruction& instruction : program.instructions()) {
      instruction.launch({});
      if (execution_.between) execution_.between();
    }
    exposed_comm_ms_ = *execution_.exposed_ms - exposed;
    started_ = true;
  }
  StepMetrics finish() override {
    if (!started_) throw std::logic_error("no step was started");
    started_ = false;
    const double* sums = memory_.metrics();
    return {sums[0], sums[1], sums[2], sums[3], sums[4]};
  }
  std::span<const float> probabilities() const override { return execution_.probabilities; }
  int in_flight() const override { return started_ ? 1 : 0; }
  int steps_ahead() const override { return 0; }
  double exposed_comm_ms() const override { return exposed_comm_ms_; }

 private:
  const ModelMemory& memory_;
  HostExecution execution_;
  bool started_ = false;
  double exposed_comm_ms_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const ModelMemory& memory, HostExecution execution) {
  return std::make_unique<HostExecutor>(memory, std::move(execution));
}

}  // namespace convoy::app
