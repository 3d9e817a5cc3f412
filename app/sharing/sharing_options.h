// The options of a device that several jobs share (shared_device.h), and of its jobs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kernels/device/kernel.h"

namespace convoy::app {

struct SharedJob {
  std::string name;
  int priority = 0;      // higher goes first
  bool service = false;  // answers requests, so it may run at any time
};

struct SharingOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  std::int64_t memory_limit = 0;  // most bytes of the device for all jobs; 0: what is free
  double longest_piece_ms = 2;    // the longest piece of a training's step
  // The fewest bytes of a part of a state that arrives at once: about 0.1 ms of a copy.
  std::int64_t least_group_bytes = std::int64_t{4} << 20;
  // Copies the next job's state in while the current job computes. If false, jobs alternate step by
  // step, and a state is copied in when its job needs it.
  bool prefetch = true;
  bool hold = true;  // whether trainings wait while a service has work
  // A group (turns.h) whose jobs launch nothing for this time loses its turn.
  std::chrono::milliseconds idle{2};
};

}  // namespace convoy::app
