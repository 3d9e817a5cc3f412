// Declares RunHost, which holds what a process provides to the trainings that it runs. The process
// of `convoy train` has one training. That of `convoy share` may have several, each in its own
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <ostream>

#include "app/execute/device_gate.h"
#include "app/training/signals.h"
#include "comm/placement/environment.h"

namespace convoy::app {

// The work that a run still has to do.
struct PlannedWork {
  std::int64_t steps = 0;  // training steps (with --accumulate: parts of steps)
  std::int64_t evaluated_batches = 0;
  double batch_steps = 0;  // estimated: the time to evaluate a batch divided by that of a training step
  // The number of checkpoints without the one after the last step.
  std::int64_t checkpoints = 0;
  std::int64_t checkpoint_bytes = 0;  // bytes of each checkpoint
};

struct RunHost {
  comm::MpiEnvironment& environment;
  const StopRequest& stop;
  // Gets the configuration, the progress and the closing lines as text.
  std::ostream* output = &std::cout;
  // Orders the use of the device among several runs of this process; null if there is only one run.
  // If a gate is given, the process is already bound to cores, and the run uses `threads` threads.
  DeviceGate* gate = nullptr;
  int threads = 0;
  // Called once the run is set up, with the work that is left to do. May be empty.
  std::function<void(const PlannedWork& work)> planned = nullptr;
};

}  // namespace convoy::app
