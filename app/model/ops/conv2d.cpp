#include "app/model/ops/conv2d.h"

#include <fmt/format.h>

namespace convoy::app {

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
  // As in PyTorch, the fan-out counts all filters; it is not divided by the number of groups.
  const double fan_out = static_cast<double>(filters) * kernel[0] * kernel[1];
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
  if (stride[0] > 1 || stride[1] > 1) text += ", stride " + extents(stride);
  if (padding[0] > 0 || padding[1] > 0) text += ", padding " + extents(padding);
  if (dilation[0] > 1 || dilation[1] > 1) text += ", dilation " + extents(dilation);
  if (groups > 1) text += fmt::format(", groups {}", groups);
  return relu ? text + ", relu" : text;
}

}  // namespace convoy::app
