// Divides a step into pieces that a device runs one after the other, so that other sessions of the
// process can use the device between two pieces.
#pragma once

#include <vector>

#include "app/execute/lane_plan.h"
#include "app/execute/program.h"
#include "app/graph/passes/precision.h"

namespace convoy::app {

struct StepPiece {
  // The piece launches the instructions LanePlan::order[first] to order[end - 1].
  std::size_t first = 0, end = 0;
  double milliseconds = 0;  // estimated from operations and bytes
};

// Returns the pieces in their order. An instruction is never divided, so a piece may take longer
// than `longest_ms`. There is only one piece if `longest_ms` is 0 or if the program communicates.
// There is also only one if the program copies tensors to or from host memory, because these
// copies run during most of the step.
std::vector<StepPiece> divide_step(const Program& program, const LanePlan& plan, Precision precision,
                                   double longest_ms);

// Returns for each piece the ranges within `state` that it reads or writes and no earlier piece
// does, in the order of their first use.
std::vector<std::vector<MemoryRange>> first_uses(const Program& program, const LanePlan& plan,
                                                 const std::vector<StepPiece>& pieces,
                                                 const MemoryRange& state);

}  // namespace convoy::app
