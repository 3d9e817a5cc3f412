// Predicts when the last of several jobs is done that share a device, from the time that each group
// of jobs needs by itself.
#pragma once

#include <span>
#include <vector>

namespace convoy::app {

// A job of a group that runs side by side. Times are in ms.
struct GroupJob {
  double steps_end = 0;  // time of the group until the job has done all steps of training and tests
  // Time that checkpoints before the end take. Other jobs run meanwhile.
  double pauses = 0;
  double closing = 0;  // time after the last step: the last checkpoint
};

struct GroupOfJobs {
  int priority = 0;
  double turn = 1;  // ms of a turn
  std::vector<GroupJob> jobs;
};

// Returns the ms until all jobs have ended. The groups take turns; those of higher priority come
// before the others. `computing` is the share of the time in which the device computes; it copies
// states in the rest.
double makespan_ms(std::span<const GroupOfJobs> groups, double computing);

}  // namespace convoy::app
