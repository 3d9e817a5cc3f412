// Group normalisation of every sample over the pixels of a group of neighbouring channels (Wu, He,
// ECCV 2018). With as many groups as channels it is instance normalisation.
//   group_norm_forward   {x, gamma, beta} -> {y, moments}                y may be x
//   group_norm_backward  {x, gamma, dy, moments} -> {dx, dgamma, dbeta}  dx may be x or dy
// x, y, dy and dx are [N, C, H, W] or [N, C], of one layout. gamma, beta, dgamma and dbeta are f32
// [C]. moments is f32 [2 N groups]: first the mean, then 1 / sqrt(variance + epsilon), each for all
// groups of all samples. The formulas are those of layer_norm.h, with means over a group.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct GroupNormProblem {
  int groups = 32;  // a divisor of the number of channels
  float epsilon = 1e-5f;
};

CONVOY_KERNEL(group_norm_forward, GroupNormProblem);
CONVOY_KERNEL(group_norm_backward, GroupNormProblem);

// Check the number, shapes and types of the operands, and the layouts of gamma, beta and other
// vectors. All backends make these checks.
void require_group_norm_forward(const GroupNormProblem& problem, KernelRequest& request);
void require_group_norm_backward(const GroupNormProblem& problem, KernelRequest& request);

}  // namespace convoy::kernels
