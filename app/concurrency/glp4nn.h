// Finds how many streams the kernels of a layer can use, by the analyzer of GLP4NN. Fu, Tang, He,
// Yu and Sun: "GLP4NN: A convergence-invariant and network-agnostic light-weight parallelization
// framework for deep neural networks on modern GPUs" (ICPP 2018).
#pragma once

#include <span>
#include <vector>

#include "app/concurrency/step_load.h"

namespace convoy::app {

struct LayerKernel {
  KernelUse use;
  double ms = 0;
};

enum class Glp4nnLimits {
  original,  // limited by shared memory, threads and launch time, as in the paper
  all        // also limited by registers and blocks, which the paper omits
};

// Returns for each kernel how many instances (launches) of it should run at the same time, so that
// each multiprocessor has as many resident warps as possible. The host launches one instance every
// `launch_ms`, so a kernel cannot have more instances than are launched while it runs.
std::vector<int> glp4nn_instances(std::span<const LayerKernel> kernels, const DeviceLimits& device,
                                  double launch_ms, Glp4nnLimits limits);

// Returns the number of streams for these kernels: the sum of glp4nn_instances(), at least 1 and at
// most device.kernels.
int glp4nn_streams(std::span<const LayerKernel> kernels, const DeviceLimits& device, double launch_ms,
                   Glp4nnLimits limits);

// Returns GLP4NN's schedule of a step. Each layer runs on as many lanes (CUDA streams) as
// glp4nn_streams() returns, but on at most `most_lanes`. A layer begins when the previous layer has
// ended.
LaneOrder glp4nn_lanes(const Program& program, const StepLoad& load, const ResourceTable& resources,
                       double launch_ms, int most_lanes);

}  // namespace convoy::app
