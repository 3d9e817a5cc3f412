// Says how much of a device each instruction of a step takes. From these loads,
// interference_model.h predicts the times of instructions that run at the same time in several
// lanes (execute/lane_plan.h).
#pragma once

#include <vector>

#include "app/concurrency/resources.h"
#include "app/execute/program.h"

namespace convoy::app {

struct OpLoad {
  // The time of the instruction alone, with the gap before the next launch. 0 for an instruction
  // that takes no time of the device, such as the start of a communication.
  double ms = 0;
  // The fields `blocks`, `memory` and `arithmetic` are the fractions of the device, from 0 to 1,
  // that the instruction takes while it runs alone. `blocks` is the number of its thread blocks,
  // divided by the number that fits on the device at the same time.
  double blocks = 1;
  double memory = 0;      // fraction of the memory bandwidth
  double arithmetic = 0;  // fraction of the peak rate of arithmetic
  int likeness = 0;       // the same number for all instructions of one kind, size and grid
  Engine engine = Engine::compute;
  // True if the instruction reads indices that an earlier instruction of the step has written
  // (Instruction::reads_indices). Outside a step they may be invalid, so the instruction cannot be
  // timed alone.
  bool only_in_place = false;
};

struct StepLoad {
  std::vector<OpLoad> ops;  // one for each instruction
  // For each instruction: the instructions that must end before it starts, ascending. There are two
  // rules in addition to those of lane_plan.h. Communication keeps the program's order, because it
  // must be the same on all ranks. An instruction that communicates may block its lane, so it also
  // waits for the instruction that precedes it in the program.
  std::vector<std::vector<int>> waits;

  double serial_ms() const;  // the sum of the times of all instructions that compute
};

// The operations that a device can do and the bytes that it can copy in a millisecond.
struct DeviceThroughput {
  double operations = 1, bytes = 1;
};

// Estimates the milliseconds of every instruction from its operations and the bytes that it moves.
// No estimate is below two microseconds, the time of a launch.
std::vector<double> estimated_op_ms(const Program& program, const DeviceThroughput& rates);

// Combines the time (`ms`) and the kernels (`resources`) of every instruction into its load.
// Ignores the times of instructions that communicate.
StepLoad make_step_load(const Program& program, const std::vector<double>& ms, const ResourceTable& resources,
                        const DeviceThroughput& rates);

}  // namespace convoy::app
