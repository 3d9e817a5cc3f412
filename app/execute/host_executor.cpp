#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "app/execute/executor.h"

namespace convoy::app {

namespace {

class HostExecutor final : public Executor {
 public:
  HostExecutor(const ModelMemory& memory, HostExecution execution)
      : memory_(memory),
        execution_(std::move(execution)),
        retired_(static_cast<std::size_t>(memory.members()), false),
        metrics_(static_cast<std::size_t>(memory.members())) {}

  kernels::StepControl& control(int member) override { return *memory_.of_member(memory_.control(), member); }
  std::span<std::int32_t> labels(int member) override {
    return {memory_.of_member(memory_.labels(), member),
            memory_.has_labels() ? static_cast<std::size_t>(memory_.capacity()) : 0};
  }

  void load(data::BatchLease lease, std::span<const int> members, std::int64_t) override {
    const data::Batch& batch = *lease;
    if (memory_.has_images() && batch.images == nullptr)
      throw std::invalid_argument("the step reads images, but the batch has none");
    for (const int member : members) {
      if (memory_.has_images())
        std::memcpy(memory_.of_member(memory_.images(), member), batch.images, memory_.images_desc().bytes());
      if (memory_.has_labels()) std::copy_n(batch.labels, batch.capacity, labels(member).data());
      if (memory_.has_mix()) *memory_.of_member(memory_.mix(), member) = batch.mix;
      control(member).valid = batch.valid;
      control(member).global_valid = batch.global_valid;
      control(member).first_sample = static_cast<std::uint64_t>(batch.first);
    }
  }
  void retire(int member) override { retired_.at(static_cast<std::size_t>(member)) = true; }

  // Does nothing, because all steps run in the calling thread, one after the other.
  void start_after(Executor*) override {}

  void start(const Program& program, bool stop_requested) override {
    if (started_) throw std::logic_error("a step was started before the last one was finished");
    const Admission admitted(execution_.gate, DeviceGate::Use::step, {0, !program.goes_on()});
    const double exposed = *execution_.exposed_ms;
    for (int member = 0; member < memory_.members(); ++member) metrics_of(member)[4] = stop_requested ? 1 : 0;
    program.for_each_launched([&](const Instruction& instruction) {
      if (retired_[static_cast<std::size_t>(instruction.member)]) return;
      instruction.launch({});
      if (execution_.between) execution_.between();
    });
    exposed_comm_ms_ = *execution_.exposed_ms - exposed;
    // The next session may overwrite the activations, of which the probabilities are a part.
    probabilities_.assign(execution_.probabilities.begin(), execution_.probabilities.end());
    started_ = true;
  }
  StepResult finish() override {
    if (!started_) throw std::logic_error("no step was started");
    started_ = false;
    for (int member = 0; member < memory_.members(); ++member)
      metrics_[static_cast<std::size_t>(member)] = step_metrics(metrics_of(member));
    return {metrics_, probabilities_, exposed_comm_ms_};
  }
  int in_flight() const override { return started_ ? 1 : 0; }
  int steps_ahead() const override { return 0; }

 private:
  double* metrics_of(int member) const { return memory_.of_member(memory_.metrics(), member); }

  const ModelMemory& memory_;
  HostExecution execution_;
  std::vector<char> retired_;  // for each member: whether it needs no more computing
  std::vector<StepMetrics> metrics_;
  std::vector<float> probabilities_;
  bool started_ = false;
  double exposed_comm_ms_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const ModelMemory& memory, HostExecution execution) {
  return std::make_unique<HostExecutor>(memory, std::move(execution));
}

}  // namespace convoy::app
