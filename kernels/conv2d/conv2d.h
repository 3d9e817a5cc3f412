// Two-dimensional convolution (cross-correlation) of images, with groups, dilation and zero
// padding. An operand in brackets exists only if the condition after its colon holds.
//   conv2d_forward           {x, weights, [bias]} -> {y, [sums: statistics and not sums_known]}
//                            y = [relu](x * weights [+ bias])
//   conv2d_backward_data     {dy, weights, [x: input_relu],
//                             [norm_x, norm_sums, gamma, beta, mask, dy2: input_norm]}
//                            -> {dx, [dsums, dgamma, dbeta: input_norm]}
//   conv2d_backward_weights  {x, dy} -> {dweights, [dbias]}
// x and dx are [N, C, H, W], weights and dweights [K, C / groups, R, S], bias and dbias [K], y and
// dy [N, K, P, Q]. If forward fuses the ReLU, dy is the gradient before the ReLU: run relu_backward
// on y first, or use input_relu in the next convolution. dweights is written in the layout that the
// request gives it, which is that of the weights.
//
// On CUDA x, y, dy and dx are channels_last, and all f32 or all bf16. weights are channels_last (in
// memory K, R, S, C / groups) and of the same type. bias, dweights and dbias are f32. Tensor cores
// multiply bf16 and accumulate in fp32.
#pragma once

#include <array>
#include <optional>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct Conv2dProblem {
  std::array<int, 2> stride{1, 1};  // height, width
  std::array<int, 2> padding{0, 0};
  std::array<int, 2> dilation{1, 1};  // 1 for filters without holes
  int groups = 1;
  bool bias = false;  // the bias operands exist
  bool relu = false;  // used by forward only
  // forward also writes sums, f64 [2, K]. They are the batch_norm_statistics of y over the first
  // control->valid samples.
  bool statistics = false;  // only the reference and CUDA support it
  // Used with statistics, if the sums of this y have been written before (when a step is computed
  // again). forward runs the same kernel, so y has the same bits, but the request has no output for
  // the sums.
  bool sums_known = false;
  // backward_data gives the gradient before a ReLU whose output is x: dx is 0 wherever x is not
  // above 0.
  bool input_relu = false;  // only the reference and CUDA support it
  // backward_data fuses the backward_reduce of the batch norm, with ReLU and mask, whose output is
  // x. In place of dx it writes the batch norm's g = (dx + dy2) * mask, and its sums. norm_x and
  // the operands after it are those of the batch norm. Only the reference and CUDA support it.
  std::optional<BatchNormProblem> input_norm = std::nullopt;
  bool tf32 = false;  // CUDA may round f32 operands to tf32; host backends do not
};

// Returns whether forward has sums among its outputs.
constexpr bool writes_sums(const Conv2dProblem& problem) { return problem.statistics && !problem.sums_known; }

// Returns [N, K, P, Q]. Throws if `groups` does not divide the channels, or if the filter does not
// fit.
Shape conv2d_output_shape(const Conv2dProblem& problem, const Shape& x, const Shape& weights);

CONVOY_KERNEL(conv2d_forward, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_data, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_weights, Conv2dProblem);

// Returns whether kernels of the current device fuse input_norm (for bf16 and tf32), so that no
// separate pass is needed.
bool conv2d_fuses_input_norm(Backend backend);
namespace cuda {
bool conv2d_fuses_input_norm();
}  // namespace cuda

}  // namespace convoy::kernels
