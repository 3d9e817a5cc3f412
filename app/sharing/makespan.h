// Predicts when the last of several jobs that share a device is done. The jobs of a group run side
// by side, and the groups take turns (turns.h). The prediction starts from the time that each group
// needs by itself.
#pragma once

#include <span>
#include <vector>

namespace convoy::app {

// A job of a group. All times are in milliseconds.
struct GroupJob {
  // How long the group runs, if it runs by itself, until the job has done all its steps of training
  // and tests.
  double steps_end = 0;
  // How long the checkpoints before the last step take. Other jobs run meanwhile.
  double pauses = 0;
  // After the last step: the time to read the last checkpoint from the device, and then to write
  // it. All jobs write to one disk, one after the other.
  double reading = 0, writing = 0;
};

struct GroupOfJobs {
  int priority = 0;
  double turn = 1;  // milliseconds of a turn
  std::vector<GroupJob> jobs;
};

// Returns the milliseconds until all jobs have ended. Groups of the highest priority take turns
// first, and groups of lower priority follow when these have ended. `computing` is the share of the
// time, from 0 to 1, in which the device computes. In the rest of the time it copies states
// (memory_map.h).
double makespan_ms(std::span<const GroupOfJobs> groups, double computing);

// Returns for each group by how much to lengthen its turns, so that the last job ends at least 1 %
// earlier, and lengthens GroupOfJobs::turn by that. All are 1 if that is not possible. A long last
// checkpoint may be written when all other jobs have ended. A group with such a job gets longer
// turns, so that the steps of others hide the checkpoint (Jackson's rule: what has the most work
// left after the device goes first; Pinedo, "Scheduling", chapter 3). No other job's steps end more
// than a quarter later for that, and no turn gets longer than 0.2 s.
std::vector<double> lengthen_turns(std::span<GroupOfJobs> groups, double computing);

}  // namespace convoy::app
