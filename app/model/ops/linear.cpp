#include "app/model/ops/linear.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/linear/linear.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

namespace {
std::int64_t features(const Shape& shape) { return shape.elements() / shape[0]; }
}  // namespace

Shape Linear::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (outputs < 1) throw ShapeError(fmt::format("has {} outputs, expected one or more", outputs));
  return {inputs[0][0], outputs};
}

std::vector<ParameterSpec> Linear::parameters(Shapes inputs) const {
  const Initializer init = Initializer::uniform(1.0 / std::sqrt(static_cast<double>(features(inputs[0]))));
  std::vector<ParameterSpec> specs{
      {"weight", {outputs, features(inputs[0])}, weight_initializer.value_or(init), true}};
  if (bias) specs.push_back({"bias", {outputs}, bias_initializer.value_or(init), false});
  return specs;
}

double Linear::flops(Shapes inputs) const {
  return 2.0 * static_cast<double>(inputs[0].elements()) * static_cast<double>(outputs);
}

void Linear::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight")};
  if (bias) inputs.push_back(emitter.parameter("bias"));
  const Shape shape = emitter.shape(emitter.input());
  emitter.node(
      "linear_forward", inputs, {emitter.output()},
      [problem = kernels::LinearProblem{bias, emitter.options().tf32}](Backend backend,
                                                                       KernelRequest& request) {
        return kernels::linear_forward(backend, problem, request);
      },
      flops({&shape, 1}));
}

void Linear::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  const Shape shape = emitter.shape(emitter.input());
  std::vector<TensorId> gradients{emitter.parameter_gradient("weight")};
  if (bias) gradients.push_back(emitter.parameter_gradient("bias"));
  const kernels::LinearProblem problem{bias, emitter.options().tf32};
  emitter.node(
      "linear_backward_weights", {emitter.input(), dy}, gradients,
      [problem](Backend backend, KernelRequest& request) {
        return kernels::linear_backward_weights(backend, problem, request);
      },
      flops({&shape, 1}));
  if (!emitter.wants_gradient(0)) return;
  emitter.node(
      "linear_backward_data", {dy, emitter.parameter("weight")}, {emitter.new_input_gradient(0)},
      [problem](Backend backend, KernelRequest& request) {
        return kernels::linear_backward_data(backend, problem, request);
      },
      flops({&shape, 1}));
}

}  // namespace convoy::app
