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
    // A device gives the instruction multiprocessors before others.
    bool urgent = false;
  };
  std::vector<Step> steps;  // one element per instruction, in the program's order
  std::vector<int> order;   // the instructions in the order in which they are launched
  int lanes = 1, events = 0;
};

// The lanes that a program with copies to or from host memory has in addition, one per direction.
inline constexpr int kCopyLanes = 2;

// Returns for every instruction those before it that it must wait for, ascending.
std::vector<std::vector<int>> dependences_of(const Program& program);

// Takes the instructions in the program's order. Each follows the last instruction of a lane that
// it must wait for, or takes the lane that has been idle for longest. Deterministic.
LaneOrder fixed_lanes(const Program& program, const std::vector<std::vector<int>>& dependences, int lanes);

// Plans the program's own lanes, or fixed_lanes() if it has none. Copies to and from host memory
// have lanes of their own, after those for computing. A plan with one lane needs no events. Throws
// std::logic_error if the program's own lanes are not those of its instructions, or if their order
// has an instruction before one that it depends on.
LanePlan plan_lanes(const Program& program, int lanes);

}  // namespace convoy::app
