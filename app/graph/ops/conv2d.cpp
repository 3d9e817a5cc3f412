#include "app/model/ops/conv2d.h"

#include "app/graph/ops/relu.h"

namespace convoy::app {

kernels::Conv2dProblem Conv2d::problem(const Emitter& emitter) const {
  kernels::Conv2dProblem problem;
  problem.stride = stride;
  problem.padding = padding;
  problem.dilation = dilation;
  problem.groups = groups;
  problem.bias = bias;
  problem.relu = relu;
  problem.tf32 = emitter.options().tf32;
  return problem;
}

void Conv2d::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight")};
  if (bias) inputs.push_back(emitter.parameter("bias"));
  const Shape shape = emitter.shape(emitter.input());
  emitter.append(Conv2dForward{problem(emitter)}, inputs, {emitter.output()}, flops({&shape, 1}));
}

void Conv2d::backward(Emitter& emitter) const {
  const TensorId dy = relu ? gradient_before_relu(emitter) : emitter.output_gradient();
  const Shape shape = emitter.shape(emitter.input());
  if (emitter.trains({"weight"}) || (bias && emitter.trains({"bias"}))) {
    std::vector<TensorId> gradients{emitter.parameter_gradient("weight")};
    if (bias) gradients.push_back(emitter.parameter_gradient("bias"));
    emitter.append(Conv2dBackwardWeights{problem(emitter)}, {emitter.input(), dy}, gradients,
                   flops({&shape, 1}));
  }
  if (!emitter.wants_gradient(0)) return;
  emitter.append(Conv2dBackwardData{problem(emitter)}, {dy, emitter.parameter("weight")},
                 {emitter.new_input_gradient(0)}, flops({&shape, 1}));
}

}  // namespace convoy::app
