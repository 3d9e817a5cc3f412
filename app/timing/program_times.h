// Times every instruction of a program, one after the other.
#pragma once

#include <vector>

#include "app/execute/program.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// Returns the milliseconds of each instruction: the median of `repeats` rounds. On a host each time
// includes the cost of reading the clock, so the sum exceeds the time of a step. A GPU first runs
// one round without timing, in which a profiler sees the names of the layers. Requires that no step
// is in flight.
std::vector<double> time_program(const Program& program, kernels::Backend backend, int repeats);

// Runs the program once on the current GPU, with an NVTX range around each instruction. The range
// has the names of the instruction's layer and kind.
void run_in_named_ranges(const Program& program);

}  // namespace convoy::app
