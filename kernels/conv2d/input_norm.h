// Runs backward_data with input_norm (Conv2dProblem) where no kernel fuses the two: first the
// convolution, and then the batch norm's backward_reduce, in place on dx.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/conv2d/conv2d.h"
#include "kernels/device/host_kernel.h"

namespace convoy::kernels {

// The positions of input_norm's operands among the inputs and among the outputs of a request.
enum InputNormInput : int {
  norm_x_at = 2,
  norm_sums_at,
  norm_gamma_at,
  norm_beta_at,
  norm_mask_at,
  norm_dy2_at
};
enum InputNormOutput : int { norm_dsums_at = 1, norm_dgamma_at, norm_dbeta_at };

inline void require_input_norm_counts(const char* operation, const Conv2dProblem& problem,
                                      const KernelRequest& request) {
  if (!problem.input_norm) return require_counts(operation, request, problem.input_relu ? 3 : 2, 1);
  if (problem.input_relu)
    throw std::invalid_argument(std::string(operation) +
                                ": found input_norm with input_relu, expected one of them");
  require_counts(operation, request, norm_dy2_at + 1, 4);
}

// Makes the kernel of the batch_norm_backward_reduce that follows the convolution. `reduce` is the
// backend's maker of this operation, which also chooses the layouts of the norm's operands in the
// request.
inline Kernel norm_pass(Kernel (*reduce)(const BatchNormProblem&, KernelRequest&), BatchNormProblem norm,
                        KernelRequest& request) {
  norm.relu = norm.residual = norm.relu_mask = norm.second_gradient = norm.write_gradient = true;
  auto& in = request.inputs;
  auto& out = request.outputs;
  KernelRequest pass{{in[norm_x_at], in[norm_sums_at], in[norm_gamma_at], in[norm_beta_at], out[0],
                      in[norm_mask_at], in[norm_dy2_at]},
                     {out[norm_dsums_at], out[norm_dgamma_at], out[norm_dbeta_at], out[0]}};
  const Kernel kernel = reduce(norm, pass);
  for (int i = 0; i < 4; ++i) in[norm_x_at + i] = pass.inputs[i];
  in[norm_mask_at] = pass.inputs[5], in[norm_dy2_at] = pass.inputs[6];
  for (int i = 0; i < 3; ++i) out[norm_dsums_at + i] = pass.outputs[i];
  out[0] = pass.outputs[3];
  return kernel;
}

inline Kernel followed_by_norm_pass(const Kernel& convolution, const Kernel& pass) {
  return followed_by(convolution, pass, [](const Kernel& reduce, const Operands& operands) {
    const auto in = operands.inputs, out = operands.outputs;
    void* const inputs[] = {in[norm_x_at], in[norm_sums_at], in[norm_gamma_at], in[norm_beta_at],
                            out[0],        in[norm_mask_at], in[norm_dy2_at]};
    void* const outputs[] = {out[norm_dsums_at], out[norm_dgamma_at], out[norm_dbeta_at], out[0]};
    return reduce.bind({inputs, outputs, operands.workspace, operands.control, operands.members});
  });
}

}  // namespace convoy::kernels
