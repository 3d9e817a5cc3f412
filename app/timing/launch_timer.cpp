#include "app/timing/launch_timer.h"

#include <time.h>

#include <chrono>
#include <utility>

namespace convoy::app {
namespace {

double processor_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

class HostTimer final : public LaunchTimer {
 public:
  explicit HostTimer(std::vector<kernels::Launch> launches) : launches_(std::move(launches)) {}

  std::vector<LaunchTime> round() override {
    using Clock = std::chrono::steady_clock;
    std::vector<LaunchTime> times(launches_.size());
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      if (!launches_[i]) continue;
      const double worked_before = processor_ms();
      const auto start = Clock::now();
      launches_[i]({});
      times[i].passed = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      times[i].worked = processor_ms() - worked_before;
    }
    return times;
  }

 private:
  std::vector<kernels::Launch> launches_;
};

}  // namespace

std::unique_ptr<LaunchTimer> make_launch_timer(kernels::Backend backend,
                                               std::vector<kernels::Launch> launches) {
  if (backend == kernels::Backend::cuda) return make_cuda_launch_timer(std::move(launches));
  return std::make_unique<HostTimer>(std::move(launches));
}

}  // namespace convoy::app
