// Batch normalisation over (N, H, W) per channel (Ioffe, Szegedy, ICML 2015). It is split where
// synchronised statistics need an all-reduce: of sums between statistics and forward, and of dsums
// between backward_reduce and backward. A bracketed operand exists if the condition after its colon
// holds; later operands move up if it does not.
//   batch_norm_statistics       {x} -> {sums}
//   batch_norm_forward          {x, sums, gamma, beta, running_mean, running_var,
//                                [residual: residual]}
//                               -> {y, [mask: relu_mask]}    y may be x or residual
//   batch_norm_inference        {x, gamma, beta, running_mean, running_var, [residual: residual]}
//                               -> {y}                       y may be x or residual
//   batch_norm_backward_reduce  {x, sums, gamma, beta, dy,
//                                [y: relu and residual; with relu_mask: mask],
//                                [dy2: second_gradient]}
//                               -> {dsums, dgamma, dbeta, [g: write_gradient]}    g may be dy
//   batch_norm_backward         {x, sums, gamma, beta, dy (g if write_gradient), dsums,
//                                [dx2: second_input_gradient]}
//                               -> {dx}                      dx may be x, dy (g) or dx2
// x, y, residual, dy, dy2, g, dx, dx2 [N, C, H, W] of one layout, or [N, C]; gamma, beta,
// running_*, dgamma, dbeta f32 [C]; sums f64 [2, C]: sum x, sum x^2; dsums f64 [2, C]: sum g, sum g
// xhat. mask: the elements that the ReLU passes on. Only backward_reduce reads it; the maker
// chooses its type and shape.
//
// Sums run over the first control->valid samples. Their divisor is (synchronised ? global_valid :
// valid) * H * W.
//   y = [relu or activation]((x - mean) invstd gamma + beta [+ residual])
//   g = dy [+ dy2], times the activation's derivative; 0 where the ReLU is 0 and for samples that
//       are not valid
//   dx = gamma invstd (g - dsums[0] / count - xhat dsums[1] / count) [+ dx2], 0 if not valid
// forward also updates inputs 4 and 5 in place: new = (1 - momentum) old + momentum batch, with the
// unbiased variance, as PyTorch does. A count of 0 leaves them alone and uses mean = 0, variance =
// 1. Backward knows the ReLU's zeros from y if there is a residual, else it computes them, and the
// activation's derivative, from x.
// The residual's gradient is g. dgamma and dbeta are sums of this rank only.
#pragma once

#include <optional>

#include "kernels/activation/activation.h"
#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct BatchNormProblem {
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool relu = false;
  // A function that takes the place of the ReLU; not with relu or residual.
  std::optional<ActivationProblem> activation = std::nullopt;
  bool residual = false;         // adds a tensor before the ReLU
  bool synchronised = false;     // sums and dsums are reduced over all ranks
  bool second_gradient = false;  // y has a second consumer, whose gradient is dy2
  // g is an output. Required with second_gradient, and with relu and residual.
  bool write_gradient = false;
  // x has a second consumer, whose gradient is dx2.
  bool second_input_gradient = false;
  // inference takes mean and beta as 0, which makes it its own backward: dx = gamma invstd dy.
  bool linear = false;
  // Needs relu. forward writes a mask; with a residual backward_reduce reads it in place of y.
  // Reference and CUDA only.
  bool relu_mask = false;
};

// Both throw std::invalid_argument: for backward, if it could not know the gradient because
// write_gradient is missing; for all operations, if the activation cannot be computed.
void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem);
void require_batch_norm_activation(const char* operation, const BatchNormProblem& problem);

// Returns whether batch_norm_backward applies the derivative of what follows the normalisation. If
// not, backward_reduce has done so and written g.
inline bool differentiates_again(const BatchNormProblem& problem) {
  return (problem.relu || problem.activation) && !problem.write_gradient;
}

CONVOY_KERNEL(batch_norm_statistics, BatchNormProblem);
CONVOY_KERNEL(batch_norm_forward, BatchNormProblem);
CONVOY_KERNEL(batch_norm_inference, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward_reduce, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward, BatchNormProblem);

}  // namespace convoy::kernels
