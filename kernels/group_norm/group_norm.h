// Group normalisation of every sample over the pixels of a group of neighbouring channels (Wu, He,
// ECCV 2018). As many groups as channels make it instance normalisation.
//   group_norm_forward   {x, gamma, beta} -> {y, moments}                y may be x
//   group_norm_backward  {x, gamma, dy, moments} -> {dx, dgamma, dbeta}  dx may be x or dy
// x, y, dy, dx [N, C, H, W] or [N, C] of one layout; gamma, beta, dgamma, dbeta f32 [C]. moments
// f32 [2 N groups]: the means of all samples' groups, then their inverse deviations. The formulas
// are those of layer_norm.h with means over a group.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct GroupNormProblem {
  int groups = 32;  // divides the channels
  float epsilon = 1e-5f;
};

CONVOY_KERNEL(group_norm_forward, GroupNormProblem);
CONVOY_KERNEL(group_norm_backward, GroupNormProblem);

// Checks shared by the backends: counts, shapes and types of all operands, and the layouts of those
// that are not images.
void require_group_norm_forward(const GroupNormProblem& problem, KernelRequest& request);
void require_group_norm_backward(const GroupNormProblem& problem, KernelRequest& request);

}  // namespace convoy::kernels
