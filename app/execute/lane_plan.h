// Decides which instructions of a program may run at the same time, and which must wait for which.
// Two instructions depend on each other if one writes memory that the other touches. This also
// orders buffers that share space in the arena.
#pragma once

#include <vector>

#include "app/execute/program.h"

namespace convoy::app {

struct LanePlan {
  struct Step {
    int lane = 0;
    std::vector<int> waits;  // events to wait for before the instruction
    int records = -1;        // event to record after the instruction; -1: none
  };
  std::vector<Step> steps;  // one for each instruction, in the program's order
  int lanes = 1, events = 0;
};

// Lanes that a program with copies has in addition: one for each direction.
inline constexpr int kCopyLanes = 2;

// Every lane runs its instructions in the program's order. `lanes`: those for computing. Copies to
// and from host memory have lanes of their own, the last ones. The plan is deterministic. A plan
// with one lane needs no events.
LanePlan plan_lanes(const Program& program, int lanes);

}  // namespace convoy::app
