// Layer normalisation of every pixel over its channels (Ba et al., 2016), as in ConvNeXt.
//   layer_norm_forward   {x, gamma, beta} -> {y, moments}              y may be x
//   layer_norm_backward  {x, gamma, dy, moments} -> {dx, dgamma, dbeta}  dx may be x or dy
// x, y, dy and dx are [N, C, H, W] or [N, C], of one layout. gamma, beta, dgamma and dbeta are f32
// [C]. moments is f32 [2 N H W]: `mean` of all pixels, then `invstd` of all pixels.
//   y = (x - mean) invstd gamma + beta,  invstd = 1 / sqrt(variance + epsilon)
//   dx = invstd (g - mean(g) - xhat mean(g xhat)),  g = dy gamma,  xhat = (x - mean) invstd
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct LayerNormProblem {
  float epsilon = 1e-6f;
};

// Returns the shape of `moments`.
Shape layer_norm_moments(const Shape& x);

CONVOY_KERNEL(layer_norm_forward, LayerNormProblem);
CONVOY_KERNEL(layer_norm_backward, LayerNormProblem);

// Check the number, shapes and types of the operands, and the layouts of gamma, beta and other
// vectors. All backends make these checks.
void require_layer_norm_forward(KernelRequest& request);
void require_layer_norm_backward(KernelRequest& request);

}  // namespace convoy::kernels
