// Says how much of a device the instructions of a step take. Times of instructions side by side are
// predicted from it.
#pragma once

#include <vector>

#include "app/concurrency/resources.h"
#include "app/execute/program.h"

namespace convoy::app {

struct OpLoad {
  // Alone, with the gap before the next launch. 0 for instructions that take no time of the device,
  // such as the start of a communication.
  double ms = 0;
  // Shares of the device, from 0 to 1, that the instruction takes while it runs alone.
  double blocks = 1;      // of the space for blocks
  double memory = 0;      // of the bandwidth
  double arithmetic = 0;  // of the rate of products
  int likeness = 0;       // the same for instructions of one kind, size and grid
  Engine engine = Engine::compute;
  bool only_in_place = false;  // Instruction::reads_indices: it cannot be timed outside a step
};

struct StepLoad {
  std::vector<OpLoad> ops;  // by instruction
  // By instruction: those that must end before it starts, ascending. Instructions that communicate
  // keep their order, which is that of all ranks, and those that may block come no earlier than in
  // the program.
  std::vector<std::vector<int>> waits;

  double serial_ms() const;  // the sum of all computing
};

// The rates that bound an instruction, in a millisecond.
struct DeviceRates {
  double operations = 1, bytes = 1;
};

// Estimates the milliseconds of every instruction, from its products and the bytes that it moves. A
// launch takes at least two microseconds.
std::vector<double> estimated_op_ms(const Program& program, const DeviceRates& rates);

// `ms` and `resources`: by instruction. The time of an instruction that communicates is not used.
StepLoad make_step_load(const Program& program, const std::vector<double>& ms, const ResourceTable& resources,
                        const DeviceRates& rates);

}  // namespace convoy::app
