// Times launches that run one after the other, as in a step.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/kernel.h"

namespace convoy::app {

// The wall time of a launch in milliseconds (`passed`), and the processor time that all threads of
// this process spent in it (`worked`). On a host they differ, for example if ranks share a core. On
// a GPU both are the time between the stamps before and after the launch.
struct LaunchTime {
  double passed = 0, worked = 0;
};

class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;
  // Runs all launches once, in their order, and returns the time of each. Requires that nothing
  // else is in flight. An empty launch takes 0 ms.
  virtual std::vector<LaunchTime> round() = 0;
  // Returns the milliseconds of a round without time stamps between its launches. Returns 0 on a
  // host, where time stamps cost next to nothing.
  virtual double undivided_round() { return 0; }
};

std::unique_ptr<LaunchTimer> make_launch_timer(kernels::Backend backend,
                                               std::vector<kernels::Launch> launches);
// Times launches on the current GPU, in one captured graph with a time stamp after each launch.
std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch> launches);

}  // namespace convoy::app
