#include "app/model/ops/batch_norm.h"

#include <fmt/format.h>

namespace convoy::app {

using kernels::Backend;
using kernels::DType;
using kernels::KernelRequest;

Shape BatchNorm::infer(Shapes inputs) const {
  if (inputs.empty() || inputs.size() > 2)
    throw ShapeError(fmt::format("reads {} tensors, expected one, or two with a residual", inputs.size()));
  expect_image(inputs[0]);
  if (inputs.size() == 2 && inputs[1] != inputs[0])
    throw ShapeError(
        fmt::format("adds {} to {}, expected equal shapes", inputs[1].to_string(), inputs[0].to_string()));
  return inputs[0];
}

std::vector<ParameterSpec> BatchNorm::parameters(Shapes inputs) const {
  return {{"weight", {inputs[0][1]}, Initializer::constant(initial_scale), false},
          {"bias", {inputs[0][1]}, Initializer::constant(0), false}};
}

std::vector<ParameterSpec> BatchNorm::states(Shapes inputs) const {
  return {{"running_mean", {inputs[0][1]}, Initializer::constant(0), false},
          {"running_var", {inputs[0][1]}, Initializer::constant(1), false}};
}

std::string BatchNorm::attributes() const { return relu ? "relu" : ""; }

kernels::BatchNormProblem BatchNorm::problem(const Emitter& emitter) const {
  kernels::BatchNormProblem problem;
  problem.epsilon = epsilon;
  problem.momentum = momentum;
  problem.relu = relu;
  problem.residual = emitter.input_count() == 2;
  problem.synchronised = emitter.options().synchronised_batch_norm;
  return problem;
}

void BatchNorm::forward(Emitter& emitter) const {
  const auto norm = problem(emitter);
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight"), emitter.parameter("bias"),
                               emitter.state("running_mean"), emitter.state("running_var")};
  if (norm.residual) inputs.push_back(emitter.input(1));
  if (!emitter.options().training) {
    emitter.node("batch_norm_inference", inputs, {emitter.output()},
                 [norm](Backend backend, KernelRequest& request) {
                   return kernels::batch_norm_inference(backend, norm, request);
                 });
    return;
  }
  const TensorId sums = emitter.new_tensor("sums", {2, emitter.shape(emitter.input())[1]}, DType::f64);
  emitter.save("sums", sums);
  emitter.node("batch_norm_statistics", {emitter.input()}, {sums},
               [norm](Backend backend, KernelRequest& request) {
                 return kernels::batch_norm_statistics(backend, norm, request);
               });
  if (norm.synchronised) emitter.all_reduce(sums);
  inputs.insert(inputs.begin() + 1, sums);
  emitter.node("batch_norm_forward", inputs, {emitter.output()},
               [norm](Backend backend, KernelRequest& request) {
                 return kernels::batch_norm_forward(backend, norm, request);
               });
  auto unchanged = norm;
  unchanged.momentum = 0;  // the running statistics are up to date
  emitter.allow_again([unchanged](Backend backend, KernelRequest& request) {
    return kernels::batch_norm_forward(backend, unchanged, request);
  });
  if (!norm.relu) return;
  auto masking = norm;
  masking.relu_mask = true;
  emitter.allow_relu_mask([masking](Backend backend, KernelRequest& request) {
    return kernels::batch_norm_forward(backend, masking, request);
  });
}

void BatchNorm::backward(Emitter& emitter) const {
  auto norm = problem(emitter);
  const TensorId x = emitter.input(), sums = emitter.saved("sums");
  const TensorId gamma = emitter.parameter("weight"), beta = emitter.parameter("bias");
  const std::vector<TensorId> dy = emitter.output_gradients(2);
  norm.second_gradient = dy.size() == 2;
  norm.write_gradient = norm.residual || norm.second_gradient;

  std::vector<TensorId> inputs{x, sums, gamma, beta, dy[0]};
  if (norm.relu && norm.residual) inputs.push_back(emitter.output());
  if (norm.second_gradient) inputs.push_back(dy[1]);
  const TensorId dsums = emitter.new_tensor("gradient_sums", emitter.shape(sums), DType::f64);
  std::vector<TensorId> outputs{dsums, emitter.parameter_gradient("weight"),
                                emitter.parameter_gradient("bias")};
  TensorId gradient = dy[0];
  if (norm.write_gradient) {
    gradient = emitter.new_tensor("masked_gradient", emitter.shape(x), DType::f32, emitter.output());
    outputs.push_back(gradient);
  }
  emitter.node("batch_norm_backward_reduce", inputs, outputs,
               [norm](Backend backend, KernelRequest& request) {
                 return kernels::batch_norm_backward_reduce(backend, norm, request);
               });
  // With one gradient a convolution would lose what the pass takes (docs/results/training.md).
  if (norm.relu && norm.second_gradient) emitter.allow_in_convolution(norm);
  if (norm.relu && norm.residual) {
    auto masked = norm;
    masked.relu_mask = true;
    emitter.allow_relu_mask([masked](Backend backend, KernelRequest& request) {
      return kernels::batch_norm_backward_reduce(backend, masked, request);
    });
  }
  if (norm.residual && emitter.wants_gradient(1)) emitter.contribute(1, gradient);
  if (!emitter.wants_gradient(0)) return;
  if (norm.synchronised) emitter.all_reduce(dsums);
  std::vector<TensorId> last_inputs{x, sums, gamma, beta, gradient, dsums};
  // In a pre-activation block x went around this layer too; whoever came back first hands over its share.
  const TensorId other = emitter.take_contribution(0);
  norm.second_input_gradient = other >= 0;
  if (norm.second_input_gradient) last_inputs.push_back(other);
  emitter.node("batch_norm_backward", last_inputs, {emitter.new_input_gradient(0)},
               [norm](Backend backend, KernelRequest& request) {
                 return kernels::batch_norm_backward(backend, norm, request);
               });
}

}  // namespace convoy::app
