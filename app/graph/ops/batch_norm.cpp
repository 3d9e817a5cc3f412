#include "app/model/ops/batch_norm.h"

#include <stdexcept>

#include "app/graph/ops/relu.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using kernels::DType;

kernels::BatchNormProblem BatchNorm::problem(const Emitter& emitter) const {
  kernels::BatchNormProblem problem;
  problem.epsilon = epsilon;
  problem.momentum = momentum;
  problem.relu = relu;
  problem.activation = activation;
  problem.residual = emitter.input_count() == 2;
  problem.synchronised = emitter.options().synchronised_batch_norm;
  return problem;
}

// Returns whether the batch norm is frozen. A frozen batch norm normalises with its running
// statistics in training, too, and does not change them.
static bool is_frozen(const Emitter& emitter) { return emitter.frozen({"weight", "bias"}); }

void BatchNorm::forward(Emitter& emitter) const {
  const auto norm = problem(emitter);
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight"), emitter.parameter("bias"),
                               emitter.state("running_mean"), emitter.state("running_var")};
  if (norm.residual) inputs.push_back(emitter.input(1));
  if (!emitter.options().training)
    return emitter.append(BatchNormInference{norm}, inputs, {emitter.output()});
  if (is_frozen(emitter)) return forward_of_frozen(emitter, norm, inputs);
  const TensorId sums = emitter.new_tensor("sums", {2, emitter.shape(emitter.input())[1]}, DType::f64);
  emitter.save("sums", sums);
  emitter.append(BatchNormStatistics{norm}, {emitter.input()}, {sums});
  if (norm.synchronised) emitter.all_reduce(sums);
  inputs.insert(inputs.begin() + 1, sums);
  emitter.append(BatchNormForward{norm}, inputs, {emitter.output()});
}

// Appends forward of a frozen batch norm. A fused activation becomes a node of its own, so that its
// input is kept: backward may need it to differentiate the activation.
void BatchNorm::forward_of_frozen(Emitter& emitter, kernels::BatchNormProblem norm,
                                  const std::vector<TensorId>& inputs) const {
  if (!activation) return emitter.append(BatchNormInference{norm}, inputs, {emitter.output()});
  norm.activation.reset();
  const TensorId normalised = emitter.new_tensor("normalised", emitter.shape(emitter.output()));
  emitter.save("normalised", normalised);
  emitter.append(BatchNormInference{norm}, inputs, {normalised});
  emitter.append(ActivationForward{*activation}, {normalised}, {emitter.output()});
}

// Appends backward of a frozen batch norm. With running statistics y is an affine map of x:
// dx = gamma / sqrt(variance + epsilon) * dy.
void BatchNorm::backward_of_frozen(Emitter& emitter) const {
  TensorId gradient = relu ? gradient_before_relu(emitter) : emitter.output_gradient();
  if (activation) {
    const TensorId dy = gradient;
    const TensorId known =
        activation_backward_reads_y(activation->kind) ? emitter.output() : emitter.saved("normalised");
    gradient = emitter.new_tensor("activation_gradient", emitter.shape(dy), DType::f32, emitter.output());
    emitter.append(ActivationBackward{*activation}, {known, dy}, {gradient});
  }
  if (emitter.input_count() == 2 && emitter.wants_gradient(1)) emitter.contribute(1, gradient);
  if (!emitter.wants_gradient(0)) return;
  kernels::BatchNormProblem norm;
  norm.epsilon = static_cast<float>(epsilon);
  norm.linear = true;
  emitter.append(BatchNormInference{norm},
                 {gradient, emitter.parameter("weight"), emitter.parameter("bias"),
                  emitter.state("running_mean"), emitter.state("running_var")},
                 {emitter.new_input_gradient(0)});
}

void BatchNorm::backward(Emitter& emitter) const {
  if (is_frozen(emitter)) return backward_of_frozen(emitter);
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
  emitter.append(BatchNormBackwardReduce{norm}, inputs, outputs);
  if (norm.residual && emitter.wants_gradient(1)) emitter.contribute(1, gradient);
  if (!emitter.wants_gradient(0)) return;
  if (norm.synchronised) emitter.all_reduce(dsums);
  std::vector<TensorId> last_inputs{x, sums, gamma, beta, gradient, dsums};
  // In a pre-activation block a shortcut also reads x. The kernel can add the shortcut's gradient
  // of x to its own, which saves a node.
  const TensorId other = emitter.take_contribution(0);
  norm.second_input_gradient = other >= 0;
  if (norm.second_input_gradient) last_inputs.push_back(other);
  emitter.append(BatchNormBackward{norm}, last_inputs, {emitter.new_input_gradient(0)});
}

void BatchNorm::write(LayerWriter& onnx) const {
  if (relu || onnx.layer().inputs.size() > 1) throw std::logic_error("export of a fused network");
  if (onnx.is_folded()) return onnx.pass_input();
  onnx.node("BatchNormalization", {onnx.input(), onnx.parameter("weight"), onnx.parameter("bias"),
                                   onnx.parameter("running_mean"), onnx.parameter("running_var")})
      .set("epsilon", static_cast<float>(epsilon))
      .set("momentum", static_cast<float>(1 - momentum));
}

}  // namespace convoy::app
