// Ranks that share processors, caches and memory. While more of them run than there are processors, each runs at its share
// of them; and beside others a processor takes longer for the same work.
#pragma once

#include <vector>

#include "comm/placement/topology.h"

namespace convoy::app {

struct SharedProcessors {
  std::vector<int> group_of;       // of every stage: those that have the same cores
  std::vector<double> processors;  // of every group: how many of its stages can run at once
  std::vector<int> memory_of;      // of every stage: those on one host
  std::vector<double>
      replicas;  // of every memory: how many copies of these stages use it, all doing the same

  // How fast a stage runs, 1 being alone on a processor of its own, while those of `running` do. `slowdown`: how much more a
  // processor works for what the stage runs while every stage of its memory does; fewer slow it down in proportion.
  double speed(int stage, const std::vector<bool>& running, double slowdown) const;

 private:
  double running_in(int group, const std::vector<bool>& running) const;
  double busy_beside(int memory, const std::vector<bool>& running) const;
};

// `ranks` of the world, replica after replica, each of `stages` ranks of `threads` threads: the first replica's stages. All ranks of a
// host use its memory and, as far as this knows, its caches; those with the same cores share them.
SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int stages, int threads);
// Every stage has a processor and a memory of its own.
SharedProcessors separate_processors(int stages);

}  // namespace convoy::app
