#include "app/execute/prepare_timing.h"

#include "app/execute/fill_with_numbers.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

void prepare_timing(Session& session) {
  const StepOptions& options = session.options();
  const ModelMemory& memory = session.memory();
  const Admission admitted = session.tensors().use_memory();
  session.tensors().copy_parameters();
  const auto fill = [&](void* data, std::int64_t bytes) {
    fill_with_numbers(options.backend, static_cast<std::byte*>(data), bytes);
  };
  for (int member = 0; member < session.members(); ++member) {
    fill(memory.of_member(memory.update_workspace(), member), memory.plan().bytes(Region::activations));
    if (memory.has_images() && options.input.kind == InputOptions::Kind::filled)
      fill(memory.of_member(memory.images(), member),
           static_cast<std::int64_t>(session.images().desc.bytes()));
    kernels::StepControl control = session.control(member);
    control.valid = static_cast<std::int32_t>(memory.capacity());
    control.global_valid = control.valid * session.groups().replicas->size();
    control.learning_rate = 0;
    kernels::copy_in(options.backend, memory.of_member(memory.control(), member), &control, sizeof control);
    const kernels::MixParameters mix;
    if (memory.has_mix())
      kernels::copy_in(options.backend, memory.of_member(memory.mix(), member), &mix, sizeof mix);
  }
}

}  // namespace convoy::app
