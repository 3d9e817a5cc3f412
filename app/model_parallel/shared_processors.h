// Models the speed of ranks that share processors, caches and memory. If more ranks run than there
// are processors, each gets an equal share. Also, a processor needs longer for the same work while
// other processors are busy. Replicas and their stages are explained in plan.h.
#pragma once

#include <vector>

#include "comm/placement/rank_placement.h"

namespace convoy::app {

struct SharedProcessors {
  // The group of each stage. Stages of a group run on the same cores.
  std::vector<int> group_of;
  // How many stages of each group the cores of the group can run at full speed. The number can be
  // below 1 if other replicas use the same cores.
  std::vector<double> processors;
  // The index of the memory that each stage uses. Stages on one host use the same memory.
  std::vector<int> memory_of;
  // The number of replicas that use each memory. They do the same work at the same time.
  std::vector<double> replicas;

  // Returns the speed of a stage while the stages in `running` run. A stage alone on a processor
  // has speed 1. `slowdown` is the factor by which the stage's current work takes longer if all
  // stages with the same memory run. If fewer run, the slowdown is smaller in proportion.
  double speed(int stage, const std::vector<bool>& running, double slowdown) const;

 private:
  double running_in(int group, const std::vector<bool>& running) const;
  double busy_share(int memory, const std::vector<bool>& running) const;
};

// Describes how the stages of the first replica share processors. `ranks` are all ranks of the run,
// replica after replica. Each replica has `stages` ranks, and each rank has `threads` threads. All
// ranks of a host share its memory and, as an approximation, its caches. Ranks with the same cores
// share these cores.
SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int stages, int threads);
// Describes stages that share neither processors nor memory.
SharedProcessors separate_processors(int stages);

}  // namespace convoy::app
