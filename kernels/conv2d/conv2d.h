// Two-dimensional convolution (cross-correlation) of images, with groups, dilation and zero
// padding. A bracketed operand exists if the condition after its colon holds.
//   conv2d_forward           {x, weights, [bias]} -> {y, [sums: statistics and not sums_known]}
//                            y = [relu](x * weights [+ bias])
//   conv2d_backward_data     {dy, weights, [x: input_relu],
//                             [norm_x, norm_sums, gamma, beta, mask, dy2: input_norm]}
//                            -> {dx, [dsums, dgamma, dbeta: input_norm]}
//   conv2d_backward_weights  {x, dy} -> {dweights, [dbias]}
// x [N, C, H, W], weights [K, C / groups, R, S], bias [K], y [N, K, P, Q]. If forward fuses the
// ReLU, dy is the gradient before it: run relu_backward on y first, or use input_relu in the next
// convolution. dweights is written in the layout that it is given (that of the weights).
//
// On CUDA x, y, dy, dx are channels_last, all f32 or all bf16; weights are channels_last (K, R, S,
// C / groups in memory) of the same type; bias, dweights and dbias are f32. Tensor cores multiply
// bf16 and accumulate in fp32.
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
  bool bias = false;  // whether the bias operands exist
  bool relu = false;  // forward only
  // forward also writes sums, f64 [2, K]: the batch_norm_statistics of y over the first
  // control->valid samples.
  bool statistics = false;  // only the reference and CUDA support it
  // With statistics: the sums were written before. forward runs the same kernel again, so y has the
  // same bits, but has no sums among its outputs.
  bool sums_known = false;
  // backward_data: x is the output of a ReLU, so dx is the gradient before it, which is 0 where x
  // is not above 0.
  bool input_relu = false;  // only the reference and CUDA support it
  // backward_data fuses the backward_reduce of the batch norm (with ReLU and mask) that made x. It
  // writes that layer's g = (dx + dy2) * mask in place of dx, and its sums. norm_x and the operands
  // after it are that layer's.
  // only the reference and CUDA support it
  std::optional<BatchNormProblem> input_norm = std::nullopt;
  bool tf32 = false;  // CUDA may round f32 operands to tf32; host backends do not
};

// Returns whether forward has sums among its outputs.
constexpr bool writes_sums(const Conv2dProblem& problem) { return problem.statistics && !problem.sums_known; }

// Returns [N, K, P, Q]. Throws if groups do not divide the channels, or the kernel does not fit.
Shape conv2d_output_shape(const Conv2dProblem& problem, const Shape& x, const Shape& weights);

CONVOY_KERNEL(conv2d_forward, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_data, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_weights, Conv2dProblem);

// Returns whether the kernels of this device fuse input_norm (for bf16 and tf32) and do not need a
// separate pass.
bool conv2d_fuses_input_norm(Backend backend);
namespace cuda {
bool conv2d_fuses_input_norm();
}  // namespace cuda

}  // namespace convoy::kernels
