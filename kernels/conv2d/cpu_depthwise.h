// Computes gradients of large depthwise filters on the host. oneDNN has no direct algorithm for
// them, and its fallback takes 25 times as long.
#pragma once

#include <optional>

#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels::cpu {

// Returns nothing for problems that oneDNN should run: problems that are not depthwise, filters up
// to 3x3, or images that are not both in the same blocked layout.
std::optional<Kernel> depthwise_backward_weights(const Conv2dProblem& problem, KernelRequest& request);

}  // namespace convoy::kernels::cpu
