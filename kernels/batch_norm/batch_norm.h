// Batch normalisation over (N, H, W) per channel (Ioffe, Szegedy, ICML 2015), cut where synchronised
// statistics need an all-reduce: between statistics and forward (sums), and between backward_reduce and
// backward (dsums). A bracketed operand is there if and only if the condition behind its colon holds; the
// positions behind an absent one move up.
//   batch_norm_statistics       {x} -> {sums}
//   batch_norm_forward          {x, sums, gamma, beta, running_mean, running_var, [residual: residual]}
//                               -> {y, [mask: relu_mask]}                             y may be x or residual
//   batch_norm_inference        {x, gamma, beta, running_mean, running_var, [residual: residual]}
//                               -> {y}              y may be x or residual
//   batch_norm_backward_reduce  {x, sums, gamma, beta, dy, [y: relu and residual; with relu_mask: mask],
//                                [dy2: second_gradient]}
//                               -> {dsums, dgamma, dbeta, [g: write_gradient]}        g may be dy
//   batch_norm_backward         {x, sums, gamma, beta, dy (g if write_gradient), dsums,
//                                [dx2: second_input_gradient]}
//                               -> {dx}             dx may be x, dy (g) or dx2
// x, y, residual, dy, dy2, g, dx, dx2 [N, C, H, W] of one layout, or [N, C]; gamma, beta, running_*, dgamma, dbeta
// f32 [C]; sums f64 [2, C]: sum x, sum x^2; dsums f64 [2, C]: sum g, sum g xhat. mask: what the ReLU let through, for
// backward_reduce alone, its type and shape up to the maker.
//
// Sums run over the first control->valid samples. The count that they are divided by is
// (synchronised ? global_valid : valid) * H * W.  y = [relu]((x - mean) invstd gamma + beta [+ residual]).
// forward also updates inputs 4 and 5 in place: new = (1 - momentum) old + momentum batch, with the unbiased
// variance, as PyTorch does; a count of 0 leaves them alone and takes mean = 0, variance = 1.
// g = dy [+ dy2], zero where the ReLU cut: known from y where there is a residual, else from x again; zero
// for samples that are not valid. residual gets g as its gradient. dgamma and dbeta are this rank's own.
// dx = gamma invstd (g - dsums[0] / count - xhat dsums[1] / count) [+ dx2], 0 for samples that are not valid.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct BatchNormProblem {
  float epsilon = 1e-5f;
  float momentum = 0.1f;
  bool relu = false;
  bool residual = false;         // something is added before the ReLU
  bool synchronised = false;     // sums and dsums are reduced over all ranks
  bool second_gradient = false;  // y went two ways: dy + dy2 is its gradient
  bool write_gradient = false;   // g is an output; needed with second_gradient or with relu and residual
  bool second_input_gradient = false;  // x went two ways: dx2, from the other one, is part of its gradient
  // With relu: forward writes a mask, which backward_reduce, with a residual, reads in place of y. Reference and CUDA.
  bool relu_mask = false;
};

// Throws std::invalid_argument if backward could not know the gradient: write_gradient is missing.
void require_batch_norm_flags(const char* operation, const BatchNormProblem& problem);

CONVOY_KERNEL(batch_norm_statistics, BatchNormProblem);
CONVOY_KERNEL(batch_norm_forward, BatchNormProblem);
CONVOY_KERNEL(batch_norm_inference, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward_reduce, BatchNormProblem);
CONVOY_KERNEL(batch_norm_backward, BatchNormProblem);

}  // namespace convoy::kernels
