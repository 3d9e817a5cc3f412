// Ranks that share processors, caches and memory. While more of them run than there are processors, each runs at its share
// of them; and beside others a processor takes longer for the same work.
#pragma once

#include <vector>

#include "comm/placement/topology.h"

namespace convoy::app {

struct SharedProcessors {
  std::vector<int> group_of;       // of every part: those that have the same cores
  std::vector<double> processors;  // of every group: how many of its parts can run at once
  std::vector<int> memory_of;      // of every part: those on one host
  std::vector<double> replicas;  // of every memory: how many copies of these parts use it, all doing the same

  // How fast a part runs, 1 being alone on a processor of its own, while those of `running` do. `slowdown`: how much more a
  // processor works for what the part runs while every part of its memory does; fewer slow it down in proportion.
  double speed(int part, const std::vector<bool>& running, double slowdown) const;

 private:
  double running_in(int group, const std::vector<bool>& running) const;
  double busy_beside(int memory, const std::vector<bool>& running) const;
};

// `ranks` of the world, replica after replica, each of `parts` ranks of `threads` threads: the first replica's parts. All ranks of a
// host use its memory and, as far as this knows, its caches; those with the same cores share them.
SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int parts, int threads);
// Every part has a processor and a memory of its own.
SharedProcessors separate_processors(int parts);

}  // namespace convoy::app
