// Batch normalisation over (N, H, W) per channel (Ioffe, Szegedy, ICML 2015). To normalise over
// several ranks, all-reduce `sums` before forward and `dsums` before backward. An operand in
// brackets exists only if the condition after its colon holds. If it does not exist, the operands
// after it move up by one position.
//   batch_norm_statistics       {x} -> {sums}
//   batch_norm_forward          {x, sums, gamma, beta, running_mean, running_var,
//                                [residual: residual]}
//                               -> {y, [mask: relu_mask]}    y may be x or residual
//   batch_norm_affine           {sums, gamma, beta, running_mean, running_var} -> {affine}
//   batch_norm_inference        {x, gamma, beta, running_mean, running_var, [residual: residual]}
//                               -> {y}                       y may be x or residual
//   batch_norm_backward_reduce  {x, sums, gamma, beta, dy,
//                                [y: relu and residual; with relu_mask: mask],
//                                [dy2: second_gradient]}
//                               -> {dsums, dgamma, dbeta, [g: write_gradient]}    g may be dy
//   batch_norm_backward         {x, sums, gamma, beta, dy (g if write_gradient), dsums,
//                                [dx2: second_input_gradient]}
//                               -> {dx}                      dx may be x, dy (g) or dx2
// x, y, residual, dy, dy2, g, dx and dx2 are [N, C, H, W] of one layout, or [N, C]. gamma, beta,
// running_mean, running_var, dgamma and dbeta are f32 [C]. sums is f64 [2, C]: sum x, sum x^2. If x
// is f32, the variance that follows from them is right to about 1e-6, even if the mean is 1000
// standard deviations. dsums is f64 [2, C]: sum g, sum g xhat. mask says which elements the ReLU
// passes on. Only backward_reduce reads it, and each backend chooses its type and shape.
//
// Sums run over the first control->valid samples. The number of values in a sum is
// count = (synchronised ? global_valid : valid) * H * W.
//   y = [relu or activation]((x - mean) invstd gamma + beta [+ residual])
//   xhat = (x - mean) invstd
//   g = (dy [+ dy2]) times the derivative of the ReLU or activation; 0 in invalid samples
//   dx = gamma invstd (g - dsums[0] / count - xhat dsums[1] / count) [+ dx2]; 0 in invalid samples
// The gradient of the residual is g. dgamma and dbeta are sums over this rank's samples only.
//
// affine is f32 [2 C]: the scale invstd gamma and the shift beta - mean scale of each channel. An
// operation that reads x can then compute y on its own (Conv2dProblem::input_affine). `pixels` of
// the problem says how many pixels a sample of x has.
//
// forward and affine also update the running statistics in place, as PyTorch does: new = (1 -
// momentum) old + momentum batch, with the unbiased variance. If `count` is 0, they do not change
// the running statistics, and normalise with mean 0 and variance 1.
#pragma once

#include <optional>

#include "kernels/activation/activation.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct BatchNormProblem {
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool relu = false;
  // An activation function in place of the ReLU. It cannot be combined with relu or residual.
  std::optional<ActivationProblem> activation = std::nullopt;
  bool residual = false;         // forward adds a tensor before the ReLU
  bool synchronised = false;     // sums and dsums are reduced over all ranks
  bool second_gradient = false;  // y has a second consumer, whose gradient is dy2
  // backward_reduce also outputs g, the gradient before the ReLU or activation (formula above).
  // Required with second_gradient, and with relu and residual together.
  bool write_gradient = false;
  // x is also read by a second operation. backward adds dx2, the gradient from that operation, to
  // dx.
  bool second_input_gradient = false;
  // Inference takes mean and beta as 0, so that y is linear in x. The same operation then also
  // turns dy into the gradient dx = gamma invstd dy.
  bool linear = false;
  // forward writes a mask, which backward_reduce reads in place of y. Requires relu and residual,
  // and the reference or CUDA backend.
  bool relu_mask = false;
  std::int64_t pixels = 1;  // H * W, used by batch_norm_affine only
};

// Throws std::invalid_argument if flags exclude each other, or if other flags need write_gradient
// and it is not set.
void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem);
void require_batch_norm_activation(const char* operation, const BatchNormProblem& problem);

// Returns whether batch_norm_backward must multiply by the derivative of the ReLU or activation.
// With write_gradient, backward_reduce has already done so.
inline bool differentiates_again(const BatchNormProblem& problem) {
  return (problem.relu || problem.activation) && !problem.write_gradient;
}

CONVOY_KERNEL(batch_norm_statistics, BatchNormProblem);
CONVOY_KERNEL(batch_norm_forward, BatchNormProblem);
CONVOY_KERNEL_WITH_CPU(batch_norm_affine, BatchNormProblem, nullptr);
CONVOY_KERNEL(batch_norm_inference, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward_reduce, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward, BatchNormProblem);

}  // namespace convoy::kernels
