#include "app/model/ops/conv2d.h"

#include <stdexcept>

#include "app/graph/ops/relu.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using onnx_export::Dims;

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

void Conv2d::write(LayerWriter& onnx) const {
  if (relu) throw std::logic_error("export of a fused network");
  onnx.node("Conv", onnx.convolution_operands(bias))
      .set("kernel_shape", Dims{kernel[0], kernel[1]})
      .set("strides", Dims{stride[0], stride[1]})
      .set("pads", Dims{padding[0], padding[1], padding[0], padding[1]})
      .set("dilations", Dims{dilation[0], dilation[1]})
      .set("group", std::int64_t{groups});
}

}  // namespace convoy::app
