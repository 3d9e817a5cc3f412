// Times every instruction of a program, one after the other.
#pragma once

#include <vector>

#include "app/execute/program.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// Returns milliseconds, each the median of `repeats` rounds. On a host they include the cost of
// reading the clock, so their sum exceeds a step. No step may be in flight. On a GPU an untimed
// round comes first, which shows the layers' names to a profiler.
std::vector<double> time_program(const Program& program, kernels::Backend backend, int repeats);

// Runs the program once on the current GPU, with an NVTX range of the layer's name around each
// instruction.
void run_in_named_ranges(const Program& program);

}  // namespace convoy::app
