#include "app/execute/cuda_program_clock.h"

namespace convoy::app {

ProgramClock::ProgramClock(int lanes, int intervals)
    : stamps_(2 * intervals), used_(static_cast<std::size_t>(2 * lanes + 1), false) {
  if (intervals == 0) return;
  // Without high priority a time stamp could wait for the thread blocks of a kernel that starts at
  // the same time, and would then be too late.
  for (std::size_t branch = 0; branch < used_.size(); ++branch)
    branches_.emplace_back(kernels::CudaStream::Priority::high);
}

void ProgramClock::take(int stamp, int branch, cudaStream_t stream) {
  const kernels::CudaStream& own = branches_.at(static_cast<std::size_t>(branch));
  const kernels::CudaEvent& fork = edges_.emplace_back();
  fork.record(stream);
  fork.make_wait(own.get());
  stamps_.take(own.view(), stamp);
  used_[static_cast<std::size_t>(branch)] = true;
}

void ProgramClock::end_after(int interval, const std::function<void(kernels::Stream)>& follow) {
  follow(branches_.back().view());
  stamps_.take(branches_.back().view(), 2 * interval + 1);
  used_.back() = true;
}

void ProgramClock::join(cudaStream_t stream) {
  for (std::size_t branch = 0; branch < used_.size(); ++branch) {
    if (!used_[branch]) continue;
    const kernels::CudaEvent& edge = edges_.emplace_back();
    edge.record(branches_[branch].get());
    edge.make_wait(stream);
    used_[branch] = false;
  }
}

}  // namespace convoy::app
