#include "app/timing/step_times.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "app/execute/session_tools.h"
#include "kernels/device/philox.h"

namespace convoy::app {

double TimedSteps::mean() const {
  return std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
}

void fill_batch(Session& session, std::int64_t classes, int ranks) {
  // Making random numbers is slow, so only this many are made and then repeated. The count is a
  // prime and so no multiple of the size of a row or of a channel. Otherwise whole rows or channels
  // of the images could be equal.
  constexpr std::size_t kDrawn = 1'048'573;
  StepInput& input = session.input();
  std::vector<float> images(static_cast<std::size_t>(input.images().desc.shape.elements()));
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = i < kDrawn ? 2 * kernels::uniform(kernels::philox(1, i).word[0]) - 1 : images[i - kDrawn];
  for (int member = 0; member < session.memory().members(); ++member) {
    session.tensors().write(input.images(), images, member);
    const std::span<std::int32_t> labels = input.labels(member);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] =
          static_cast<std::int32_t>(kernels::philox(2, i).word[0] % static_cast<std::uint64_t>(classes));
    kernels::StepControl& control = input.control(member);
    control.valid = static_cast<std::int32_t>(labels.size());
    control.global_valid = control.valid * ranks;
    control.learning_rate = 0;
  }
}

TimedSteps time_steps(Session& session, std::int64_t steps, const Program* copy) {
  using Clock = std::chrono::steady_clock;
  TimedSteps timed;
  auto before = Clock::now();
  const auto finish = [&] {
    const StepResult result = session.finish_step();
    timed.last = result.metrics[0];
    const auto now = Clock::now();
    timed.ms.push_back(std::chrono::duration<double, std::milli>(now - std::exchange(before, now)).count());
    timed.exposed_comm_ms += result.exposed_comm_ms / static_cast<double>(steps);
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    copy == nullptr ? session.start(StepKind::train) : SessionTools(session).start(*copy);
    if (session.steps_in_flight() > session.steps_ahead()) finish();
  }
  while (session.steps_in_flight() > 0) finish();
  return timed;
}

}  // namespace convoy::app
