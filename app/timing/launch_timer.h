// Times launches that run one behind the other, as in a step.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

// Milliseconds that passed, and that this process's threads worked: a device has nobody beside it, so there they are the same.
struct LaunchTime {
  double passed = 0, worked = 0;
};

class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;
  // Runs all of them once, in their order; nothing else may be under way. 0 for an empty launch.
  virtual std::vector<LaunchTime> round() = 0;
  // Milliseconds of a round that nobody looks into, or 0 where looking costs next to nothing.
  virtual double undivided_round() { return 0; }
};

std::unique_ptr<LaunchTimer> make_launch_timer(kernels::Backend backend,
                                               std::vector<kernels::Launch> launches);
// Of the current GPU: one captured graph with a time stamp behind each launch.
std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch> launches);

}  // namespace convoy::app
