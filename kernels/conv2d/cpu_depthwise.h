// Computes gradients of large depthwise filters on the host. oneDNN has no direct algorithm for
// them, and its fallback takes 25 times as long as this code.
#pragma once

#include <optional>

#include "kernels/conv2d/conv2d.h"

namespace convoy::kernels::cpu {

// Returns the kernel, or nothing if oneDNN should compute the gradient. The kernel exists for
// depthwise layers without dilation whose filter is 5x5 or 7x7. x must have a blocked layout, and
// dy must have the same layout or none yet (Layout::any).
std::optional<Kernel> depthwise_backward_weights(const Conv2dProblem& problem, KernelRequest& request);

}  // namespace convoy::kernels::cpu
