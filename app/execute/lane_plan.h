// Plans the lanes of a program. Lanes are sequences of instructions that run at the same time, and
// lanes wait for each other where instructions must keep their order. Two instructions must keep
// their order if one of them writes memory that the other reads or writes. This also holds for
// buffers that share memory in the arena.
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
    // Whether a device gives free multiprocessors to this instruction before others.
    bool urgent = false;
    bool background = false;  // Instruction::background
  };
  std::vector<Step> steps;  // one element per instruction, in the program's order
  std::vector<int> order;   // the instructions in the order in which they are launched
  int lanes = 1, events = 0;
};

// The number of additional lanes of a program that copies to or from host memory: one for each
// direction.
inline constexpr int kCopyLanes = 2;

// Returns for every instruction the earlier instructions that it must wait for, in ascending order.
std::vector<std::vector<int>> dependences_of(const Program& program);

// Assigns lanes to the instructions in the program's order. An instruction gets a lane whose last
// instruction it must wait for, else the lane that got no instruction for the longest time.
// Deterministic.
LaneOrder fixed_lanes(const Program& program, const std::vector<std::vector<int>>& dependences, int lanes);

// Plans the lanes that were chosen for the program (Program::lanes), or fixed_lanes() if there are
// none. Copies to and from host memory get additional lanes after those for computing. A plan with
// one lane has no events. Throws std::logic_error if the chosen lanes do not cover exactly the
// program's instructions, or if an instruction comes before one that it depends on.
LanePlan plan_lanes(const Program& program, int lanes);

}  // namespace convoy::app
