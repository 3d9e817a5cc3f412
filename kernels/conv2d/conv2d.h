// Two-dimensional convolution (cross-correlation) of images, with groups, dilation and zero padding.
//   conv2d_forward           {x, weights, [bias]} -> {y, [sums: statistics]}   y = [relu](x * weights [+ bias])
//   conv2d_backward_data     {dy, weights, [x: input_relu], [norm_x, norm_sums, gamma, beta, mask, dy2: input_norm]}
//                            -> {dx, [dsums, dgamma, dbeta: input_norm]}
//   conv2d_backward_weights  {x, dy} -> {dweights, [dbias]}
// x [N, C, H, W], weights [K, C / groups, R, S], bias [K], y [N, K, P, Q]. Where the ReLU is fused, dy of the
// backward operations is the gradient before it: run relu_backward on y first, or let the convolution behind give it
// (input_relu). dweights is written in the layout that it comes with (that of the weights).
//
// On CUDA x, y, dy, dx are channels_last, all f32 or all bf16; weights channels_last (K, R, S, C / groups in memory) of
// the same type; bias, dweights and dbias f32. bf16 is multiplied by tensor cores with fp32 accumulation.
#pragma once

#include <array>
#include <optional>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct Conv2dProblem {
  std::array<int, 2> stride{1, 1};  // height, width
  std::array<int, 2> padding{0, 0};
  std::array<int, 2> dilation{1, 1};  // 1: dense kernel
  int groups = 1;
  bool bias = false;  // whether the operands in brackets are there
  bool relu = false;  // forward only
  // Forward also writes sums f64 [2, K]: what batch_norm_statistics gives for y, over the first control->valid samples.
  bool statistics = false;  // reference and CUDA
  // backward_data: x came out of a ReLU, and dx is the gradient before it, zero where x is not above zero.
  bool input_relu = false;  // reference and CUDA
  // backward_data: x came out of this batch norm with a ReLU, which kept a mask, and went another way too: dx is g of its
  // batch_norm_backward_reduce of dx and dy2, and the sums are written. norm_x and what follows is that layer's.
  std::optional<BatchNormProblem> input_norm = std::nullopt;  // reference and CUDA
  bool tf32 = false;  // CUDA: f32 operands may be rounded to tf32; host backends take them whole
};

// [N, K, P, Q]; throws if channels and groups do not divide or the kernel does not fit.
Shape conv2d_output_shape(const Conv2dProblem& problem, const Shape& x, const Shape& weights);

CONVOY_KERNEL(conv2d_forward, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_data, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_weights, Conv2dProblem);

// Whether this device's kernels do input_norm as they write dx, and not in a pass of its own: for bf16 and tf32.
bool conv2d_fuses_input_norm(Backend backend);
namespace cuda {
bool conv2d_fuses_input_norm();
}  // namespace cuda

}  // namespace convoy::kernels
