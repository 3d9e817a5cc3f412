// Times launches that run one after the other, as in a step.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

// Milliseconds of wall time, and of processor time over all threads of this process. A GPU's
// launches have no competitors, so there the two are equal.
struct LaunchTime {
  double passed = 0, worked = 0;
};

class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;
  // Runs all launches once, in their order, while nothing else is in flight. An empty launch takes
  // 0 ms.
  virtual std::vector<LaunchTime> round() = 0;
  // Milliseconds of a round without stamps between its launches; 0 if stamps cost next to nothing.
  virtual double undivided_round() { return 0; }
};

std::unique_ptr<LaunchTimer> make_launch_timer(kernels::Backend backend,
                                               std::vector<kernels::Launch> launches);
// Times launches on the current GPU: one captured graph with a time stamp after each launch.
std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch> launches);

}  // namespace convoy::app
