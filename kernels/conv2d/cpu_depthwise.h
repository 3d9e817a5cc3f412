// Computes gradients of large depthwise filters on the host. oneDNN has no direct algorithm for
// them, and its fallback takes 25 times as long as this code.
#pragma once

#include <optional>

#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels::cpu {

// Returns the kernel, or nothing if oneDNN should compute the gradient. That is the case if the
// layer is not depthwise, the filter is at most 3x3, or x and dy do not have the same blocked
// layout.
std::optional<Kernel> depthwise_backward_weights(const Conv2dProblem& problem, KernelRequest& request);

}  // namespace convoy::kernels::cpu
