// The options of a device that several jobs share (shared_device.h), and of its jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kernels/device/kernel.h"

namespace convoy::app {

struct SharedJob {
  std::string name;
  int priority = 0;      // jobs of higher priority go first
  bool service = false;  // answers requests, so it may run at any time
  // Whether a service has multiprocessors of its own (SharingOptions), so no training holds it up.
  bool own_multiprocessors = false;

  // Whether trainings must leave the device to this job while it has work.
  bool holds_trainings() const { return service && !own_multiprocessors; }
};

struct SharingOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  std::int64_t memory_limit = 0;  // most bytes of the device for all jobs; 0: what is free
  double longest_piece_ms = 2;    // duration of the longest piece of a training's step
  // The fewest bytes of a state that are copied as one group (copy_plan.h). A copy of 4 MiB takes
  // about 0.1 ms.
  std::int64_t least_group_bytes = std::int64_t{4} << 20;
  // Whether the next job's state is copied to the device while the current job computes. If not,
  // jobs alternate step by step, and a state is copied when its job needs it.
  bool prefetch = true;
  bool hold = true;  // whether trainings wait while a service has work
  // The number of multiprocessors that only services with own_multiprocessors use. All other jobs
  // use the rest. 0: all jobs use all. Needs the CUDA backend (kernels/device/multiprocessors.h).
  int multiprocessors = 0;
  // A group (turns.h) whose jobs launch nothing for this time loses its turn.
  std::chrono::milliseconds idle{2};
};

}  // namespace convoy::app
