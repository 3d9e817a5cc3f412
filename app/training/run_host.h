// The services that a process gives to the runs in it. `convoy train` runs one in a process;
// `convoy share` runs several, each in a thread of its own.
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
  std::int64_t steps = 0;  // of training; with --accumulate the parts of steps
  std::int64_t evaluated_batches = 0;
  double batch_steps = 0;  // estimated time of an evaluated batch, in steps of training
  // Checkpoints before the last step. One more follows the last step.
  std::int64_t checkpoints = 0;
  std::int64_t checkpoint_bytes = 0;  // of each
};

struct RunHost {
  comm::MpiEnvironment& environment;
  const StopRequest& stop;
  // Takes the configuration, the progress and the closing lines.
  std::ostream* output = &std::cout;
  // Not null if other runs of this process use the device, too. The process has then bound its
  // threads to cores, and the run uses `threads` of them.
  DeviceGate* gate = nullptr;
  int threads = 0;
  // Is told what is left to do once the run is set up. May be empty.
  std::function<void(const PlannedWork& work)> planned = nullptr;
};

}  // namespace convoy::app
