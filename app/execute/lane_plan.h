// Decides which instructions of a program may run at the same time, and which must wait for which.
// Two instructions depend on each other if one of them writes memory that the other reads or
// writes. This rule also orders buffers that share memory in the arena.
#pragma once

#include <vector>

#include "app/execute/program.h"

namespace convoy::app {

struct LanePlan {
  struct Step {
    int lane = 0;
    // Numbers of the events that the instruction waits for.
    std::vector<int> waits;
    // Number of the event that is recorded after the instruction; -1 if there is none.
    int records = -1;
  };
  std::vector<Step> steps;  // one element per instruction, in the program's order
  int lanes = 1, events = 0;
};

// The lanes that a program with copies to or from host memory has in addition, one per direction.
inline constexpr int kCopyLanes = 2;

// Plans the lanes of a program. `lanes` is the number of lanes that compute; the last kCopyLanes
// lanes, if the program has copies, hold the copies to and from host memory. Every lane runs its
// instructions in the program's order. The plan is deterministic. A plan with one lane needs no
// events.
LanePlan plan_lanes(const Program& program, int lanes);

}  // namespace convoy::app
