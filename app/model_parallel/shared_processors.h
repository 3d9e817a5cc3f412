// The speed of ranks that share processors, caches and memory. If more ranks run than there are
// processors, each runs at its share of them. A processor also needs longer for the same work while
// others are busy.
#pragma once

#include <vector>

#include "comm/placement/rank_placement.h"

namespace convoy::app {

struct SharedProcessors {
  std::vector<int> group_of;       // by stage: its group; stages of a group have the same cores
  std::vector<double> processors;  // by group: how many of its stages can run at once
  std::vector<int> memory_of;      // by stage: its memory; stages on one host have the same memory
  // By memory: the number of replicas whose stages use it. They do the same at the same time.
  std::vector<double> replicas;

  // Returns the speed of a stage while the stages of `running` run; 1 is the speed alone on a
  // processor.
  // `slowdown`: how many times as long a processor works for the stage's current work while all
  // stages of its memory run. If fewer run, it is slowed down in proportion.
  double speed(int stage, const std::vector<bool>& running, double slowdown) const;

 private:
  double running_in(int group, const std::vector<bool>& running) const;
  double busy_share(int memory, const std::vector<bool>& running) const;
};

// Returns the sharing between the stages of the first replica. `ranks` are those of the world,
// replica after replica, each of `stages` ranks with `threads` threads. All ranks of a host share
// its memory and, as an approximation, its caches. Ranks with the same cores share these.
SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int stages, int threads);
// Returns the sharing of stages that have a processor and a memory each.
SharedProcessors separate_processors(int stages);

}  // namespace convoy::app
