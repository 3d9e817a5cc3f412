// The analyzer of GLP4NN: how many streams the kernels of a layer can use. Fu, Tang, He, Yu and
// Sun: "GLP4NN: A convergence-invariant and network-agnostic light-weight parallelization framework
// for deep neural networks on modern GPUs" (ICPP 2018).
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
  original,  // shared memory, threads and time to launch, as published
  all        // and registers and blocks of a multiprocessor, which the original forgets
};

// Finds how many instances of each kernel shall be resident so that the warps of a multiprocessor
// are as many as possible. An instance has ceil(blocks / multiprocessors) blocks there, but never
// more than the multiprocessor has space for. No kernel has more instances than can be launched
// while it runs, one every `launch_ms`.
std::vector<int> glp4nn_instances(std::span<const LayerKernel> kernels, const DeviceLimits& device,
                                  double launch_ms, Glp4nnLimits limits);

// Returns the sum of the instances, at least 1 and at most the kernels that the device runs at
// once.
int glp4nn_streams(std::span<const LayerKernel> kernels, const DeviceLimits& device, double launch_ms,
                   Glp4nnLimits limits);

// Every layer runs on as many lanes as glp4nn_streams() says, at most `most_lanes`, and begins when
// the one before has ended.
LaneOrder glp4nn_lanes(const Program& program, const StepLoad& load, const ResourceTable& resources,
                       double launch_ms, int most_lanes);

}  // namespace convoy::app
