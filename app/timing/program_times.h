// The time of every instruction of a program, one after the other.
#pragma once

#include <vector>

#include "app/execute/program.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

// Returns milliseconds, each the median of `repeats` rounds. The clock's own cost is included on a host, so the sum
// exceeds a step. No step may be under way. On a GPU an untimed round before them gives a profiler the layers' names.
std::vector<double> time_program(const Program& program, kernels::Backend backend, int repeats);

// Runs the program once on the current GPU, every instruction in a range of NVTX with its layer's name.
void run_in_named_ranges(const Program& program);

}  // namespace convoy::app
