// Which instructions of a program may run side by side, and what must wait for what. Two instructions depend on each other
// when one writes memory that the other touches: whatever the plan of the arena put into one place is thereby ordered too.
#pragma once

#include <vector>

#include "app/execute/program.h"

namespace convoy::app {

struct LanePlan {
  struct Step {
    int lane = 0;
    std::vector<int> waits;  // events
    int records = -1;        // event, recorded behind the instruction; -1: nobody waits for it
  };
  std::vector<Step> steps;  // one an instruction, in the program's order
  int lanes = 1, events = 0;
};

// Every lane runs its instructions in the program's order. Deterministic. A program with one lane needs no events.
LanePlan plan_lanes(const Program& program, int lanes);

}  // namespace convoy::app
