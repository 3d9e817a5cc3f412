#include "app/model/ops/conv2d.h"

#include <fmt/format.h>

#include "app/model/ops/relu.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

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

Shape Conv2d::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  const std::int64_t channels = inputs[0][1];
  if (filters < 1 || groups < 1 || channels % groups != 0 || filters % groups != 0)
    throw ShapeError(fmt::format("{} filters over {} channels in {} groups: expected multiples of the groups",
                                 filters, channels, groups));
  Shape output{inputs[0][0], filters, 0, 0};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (kernel[axis] < 1 || stride[axis] < 1 || dilation[axis] < 1 || padding[axis] < 0)
      throw ShapeError(fmt::format("kernel {}, stride {}, dilation {}, padding {}: expected positive extents",
                                   kernel[axis], stride[axis], dilation[axis], padding[axis]));
    const std::int64_t window = std::int64_t{dilation[axis]} * (kernel[axis] - 1) + 1;
    const std::int64_t room = inputs[0][static_cast<int>(axis) + 2] + 2 * padding[axis] - window;
    if (room < 0)
      throw ShapeError(
          fmt::format("its {}x{} kernel does not fit into {}", kernel[0], kernel[1], inputs[0].to_string()));
    output[static_cast<int>(axis) + 2] = room / stride[axis] + 1;
  }
  return output;
}

std::vector<ParameterSpec> Conv2d::parameters(Shapes inputs) const {
  const std::int64_t channels = inputs[0][1] / groups;
  const double fan_out =
      static_cast<double>(filters) * kernel[0] * kernel[1];  // PyTorch's, whatever the groups
  std::vector<ParameterSpec> specs{{"weight",
                                    {filters, channels, kernel[0], kernel[1]},
                                    weight_initializer.value_or(Initializer::he_normal(fan_out)),
                                    true}};
  if (bias) specs.push_back({"bias", {filters}, bias_initializer, false});
  return specs;
}

double Conv2d::flops(Shapes inputs) const {
  const double per_output = 2.0 * static_cast<double>(inputs[0][1] / groups) * kernel[0] * kernel[1];
  return static_cast<double>(infer(inputs).elements()) * per_output;
}

std::string Conv2d::attributes() const {
  std::string text = fmt::format("{}x{}", kernel[0], kernel[1]);
  if (stride[0] > 1 || stride[1] > 1) text += fmt::format(", stride {}", stride[0]);
  if (padding[0] > 0 || padding[1] > 0) text += fmt::format(", padding {}", padding[0]);
  if (dilation[0] > 1 || dilation[1] > 1) text += fmt::format(", dilation {}", dilation[0]);
  if (groups > 1) text += fmt::format(", groups {}", groups);
  return relu ? text + ", relu" : text;
}

void Conv2d::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs{emitter.input(), emitter.parameter("weight")};
  if (bias) inputs.push_back(emitter.parameter("bias"));
  const Shape shape = emitter.shape(emitter.input());
  emitter.node(
      "conv2d_forward", inputs, {emitter.output()},
      [problem = problem(emitter)](Backend backend, KernelRequest& request) {
        return kernels::conv2d_forward(backend, problem, request);
      },
      flops({&shape, 1}));
  if (bias || relu) return;  // what batch norm follows has neither
  auto summing = problem(emitter);
  summing.statistics = true;
  emitter.allow_statistics([summing](Backend backend, KernelRequest& request) {
    return kernels::conv2d_forward(backend, summing, request);
  });
}

void Conv2d::backward(Emitter& emitter) const {
  const TensorId dy = relu ? gradient_before_relu(emitter) : emitter.output_gradient();
  const Shape shape = emitter.shape(emitter.input());
  std::vector<TensorId> gradients{emitter.parameter_gradient("weight")};
  if (bias) gradients.push_back(emitter.parameter_gradient("bias"));
  emitter.node(
      "conv2d_backward_weights", {emitter.input(), dy}, gradients,
      [problem = problem(emitter)](Backend backend, KernelRequest& request) {
        return kernels::conv2d_backward_weights(backend, problem, request);
      },
      flops({&shape, 1}));
  if (!emitter.wants_gradient(0)) return;
  emitter.node(
      "conv2d_backward_data", {dy, emitter.parameter("weight")}, {emitter.new_input_gradient(0)},
      [problem = problem(emitter)](Backend backend, KernelRequest& request) {
        return kernels::conv2d_backward_data(backend, problem, request);
      },
      flops({&shape, 1}));
  auto masking = problem(emitter);
  masking.input_relu = true;
  emitter.allow_relu_gradient([masking](Backend backend, KernelRequest& request) {
    return kernels::conv2d_backward_data(backend, masking, request);
  });
  if (stride[0] > 1 || stride[1] > 1) return;  // no kernel does both
  emitter.allow_input_norm([problem = problem(emitter)](const kernels::BatchNormProblem& norm) {
    auto reducing = problem;
    reducing.input_norm = norm;
    return [reducing](Backend backend, KernelRequest& request) {
      return kernels::conv2d_backward_data(backend, reducing, request);
    };
  });
}

}  // namespace convoy::app
