#include "app/execute/session_tools.h"

#include "app/execute/fill_with_numbers.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

void SessionTools::start_after(const Session* before) {
  session_.executor_->start_after(before != nullptr ? before->executor_.get() : nullptr);
}

void SessionTools::prepare_timing() {
  const ModelMemory& memory = *session_.memory_;
  const StepOptions& options = session_.options_;
  const Admission admitted = session_.tensors_->use_memory();
  session_.tensors_->copy_parameters();
  const auto fill = [&](void* data, std::int64_t bytes) {
    fill_with_numbers(options.backend, static_cast<std::byte*>(data), bytes);
  };
  for (int member = 0; member < memory.members(); ++member) {
    fill(memory.of_member(memory.update_workspace(), member), memory.plan().bytes(Region::activations));
    if (memory.has_images() && options.input.kind == InputOptions::Kind::filled)
      fill(memory.of_member(memory.images(), member),
           static_cast<std::int64_t>(session_.input().images().desc.bytes()));
    kernels::StepControl values = session_.input().control(member);
    values.valid = static_cast<std::int32_t>(memory.capacity());
    values.global_valid = values.valid * session_.groups_.replicas->size();
    values.learning_rate = 0;
    kernels::copy_in(options.backend, memory.of_member(memory.control(), member), &values, sizeof values);
    const kernels::MixParameters mix;
    if (memory.has_mix())
      kernels::copy_in(options.backend, memory.of_member(memory.mix(), member), &mix, sizeof mix);
  }
}

void SessionTools::prepare_trace(int steps) {
  session_.executor_->prepare_trace(session_.programs_->train, steps);
}

void SessionTools::begin_trace() { session_.executor_->begin_trace(); }

std::vector<TracedStep> SessionTools::traced_steps() const { return session_.executor_->traced_steps(); }

int SessionTools::summed_buckets() const {
  const auto& buckets = session_.communication_->buckets;
  return buckets != nullptr ? buckets->finished() : 0;
}

}  // namespace convoy::app
