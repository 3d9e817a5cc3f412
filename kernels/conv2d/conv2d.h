// Two-dimensional convolution (cross-correlation) of images, with groups, dilation and zero
// padding. An operand in brackets exists only if the condition after its colon holds.
//   conv2d_forward           {x, weights, [bias], [affine: input_affine]}
//                            -> {y, [sums: statistics and not sums_known]}
//                            y = [relu](x * weights [+ bias])
//   conv2d_backward_data     {dy, weights, [x: input_relu],
//                             [norm_x, norm_sums, gamma, beta, mask, dy2: input_norm]}
//                            -> {dx, [dsums, dgamma, dbeta: input_norm]}
//   conv2d_backward_weights  {x, dy, [affine: input_affine], [dweights: continues],
//                             [dbias: continues and bias]}
//                            -> {dweights, [dbias]}
// x and dx are [N, C, H, W], weights and dweights [K, C / groups, R, S], bias and dbias [K], y and
// dy [N, K, P, Q]. dweights is written in the layout of the weights, which the request names. If
// forward fuses the ReLU, dy is the gradient before the ReLU: either run relu_backward on y first,
// or set input_relu in the next convolution.
//
// On CUDA x, y, dy and dx are channels_last, and all f32 or all bf16. weights are channels_last (in
// memory K, R, S, C / groups) and of the same type. bias, dweights and dbias are f32. Tensor cores
// multiply bf16 and accumulate in fp32.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels {

// A function of x that a convolution applies when it reads x: min(max(scale x + shift, least),
// most), rounded to the type of x. Infinite limits have no effect. A NaN stays a NaN. The padding
// stays 0. Each channel has its scale and shift in `affine`, f32 [2 C], which batch_norm_affine
// writes. So x can be the input of a batch norm with ReLU, whose output then exists nowhere.
struct InputAffine {
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
  bool operator==(const InputAffine&) const = default;
};

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
  // Set if forward runs again in a step that recomputes activations. `sums` is then known already,
  // and is not an output of the request. The kernel is the same, so y has the same bits.
  bool sums_known = false;
  // backward_data gives the gradient before a ReLU whose output is x: dx is 0 wherever x is not
  // above 0.
  bool input_relu = false;  // only the reference and CUDA support it
  // x is the output of a batch norm with ReLU and mask, and backward_data also does the work of
  // that norm's batch_norm_backward_reduce. In place of dx it writes g = (dx + dy2) * mask, and the
  // sums of g. The operands from norm_x on are those of the batch norm. Only the reference and CUDA
  // support it.
  std::optional<BatchNormProblem> input_norm = std::nullopt;
  // forward and backward_weights read x through this function. The backward of the function is not
  // the work of backward_data. Only the reference supports it, and CUDA if suits_input_affine().
  std::optional<InputAffine> input_affine = std::nullopt;
  bool tf32 = false;  // CUDA may round f32 operands to tf32; host backends do not
  // If not 0, backward_weights sums each piece of so many samples on its own and then adds up the
  // pieces from the first to the last. The last piece may be smaller. So a batch gives the same
  // bits when it is computed in slices of whole pieces (`continues`).
  std::int64_t piece = 0;
  // Used with `piece`: backward_weights adds to the sums of earlier pieces, which are inputs. An
  // output may have the buffer of the corresponding input.
  bool continues = false;
  // If not 0, x and y are a slice of a batch of so many samples. forward and backward_data then use
  // the kernel chosen for the whole batch, so that every sample has the same bits.
  std::int64_t batch = 0;
};

// Returns whether forward has sums among its outputs.
constexpr bool writes_sums(const Conv2dProblem& problem) { return problem.statistics && !problem.sums_known; }

// Returns [N, K, P, Q]. Throws std::invalid_argument if `groups` does not divide the channels, or
// if the filter does not fit.
Shape conv2d_output_shape(const Conv2dProblem& problem, const Shape& x, const Shape& weights);

CONVOY_KERNEL(conv2d_forward, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_data, Conv2dProblem);
CONVOY_KERNEL(conv2d_backward_weights, Conv2dProblem);

// Returns whether backward_data fuses input_norm on the current device (in bf16 and tf32). If not,
// a separate pass over dx does the work of the batch norm. Such a device also supports input_affine
// in bf16, for convolutions that suit it.
bool conv2d_fuses_input_norm(Backend backend);
// Returns whether CUDA's kernels with input_affine suit the convolution: it is 1x1 without stride,
// padding and groups, and has multiples of 8 channels and filters.
bool suits_input_affine(const Conv2dProblem& problem, const Shape& weights);
namespace cuda {
bool conv2d_fuses_input_norm();
}  // namespace cuda

}  // namespace convoy::kernels
