// Layer normalisation of every pixel over its channels (Ba et al., 2016), as in ConvNeXt.
//   layer_norm_forward   {x, gamma, beta} -> {y, moments}              y may be x
//   layer_norm_backward  {x, gamma, dy, moments} -> {dx, dgamma, dbeta}  dx may be x or dy
// x, y, dy, dx [N, C, H, W] or [N, C] of one layout; gamma, beta, dgamma, dbeta f32 [C]. moments
// f32 [2 N H W]: the means of all pixels, then their inverse deviations.
//   y = (x - mean) invstd gamma + beta,  invstd = 1 / sqrt(variance + epsilon)
//   dx = invstd (g - mean(g) - xhat mean(g xhat)),  g = dy gamma
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LayerNormProblem {
  float epsilon = 1e-6f;
};

// The shape of moments.
Shape layer_norm_moments(const Shape& x);

CONVOY_KERNEL(layer_norm_forward, LayerNormProblem);
CONVOY_KERNEL(layer_norm_backward, LayerNormProblem);

// Checks shared by the backends: counts, shapes and types of all operands, and the layouts of those
// that are not images.
void require_layer_norm_forward(KernelRequest& request);
void require_layer_norm_backward(KernelRequest& request);

}  // namespace convoy::kernels
