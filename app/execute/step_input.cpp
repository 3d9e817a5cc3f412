#include "app/execute/step_input.h"

#include <stdexcept>
#include <utility>

#include "app/execute/executor.h"

namespace convoy::app {

StepInput::StepInput(Executor& executor, const ModelMemory& memory, const StepOptions& options)
    : executor_(executor), memory_(memory), image_bytes_(options.input.stored.bytes()) {
  const bool resident = options.input.kind == InputOptions::Kind::resident;
  if (!resident || options.input.resident_images > 0) images_at_ = 0;
  for (int member = 0; member < memory.members(); ++member) {
    all_members_.push_back(member);
    const Member& own = options.members[static_cast<std::size_t>(member)];
    kernels::StepControl& values = control(member) = {};
    values.seed = own.seed;
    values.hyperparameters = own.hyperparameters;
  }
}

void StepInput::load(data::BatchLease batch, std::int64_t first_image, std::span<const int> members) {
  if (!images_at_) throw std::logic_error("a session without images must read those of another one");
  if (executor_.in_flight() > executor_.steps_ahead())
    throw std::logic_error("a batch is loaded before the oldest step is finished");
  executor_.load(std::move(batch), members.empty() ? all_members_ : members,
                 *images_at_ + first_image * image_bytes_);
}

kernels::StepControl& StepInput::control(int member) { return executor_.control(member); }

std::span<std::int32_t> StepInput::labels(int member) { return executor_.labels(member); }

void StepInput::read_images_of(const StepInput& owner) {
  images_at_ =
      static_cast<const std::byte*>(owner.memory_.images()) - static_cast<const std::byte*>(memory_.images());
}

}  // namespace convoy::app
