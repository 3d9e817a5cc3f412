// Convolution layer over [N, C, H, W] with weights [filters, C / groups, kernel height, kernel
// width].
#pragma once

#include <array>
#include <optional>

#include "app/model/layer.h"
#include "kernels/conv2d/conv2d.h"

namespace convoy::app {

CONVOY_NODE(Conv2dForward, conv2d_forward, Conv2dProblem);
CONVOY_NODE(Conv2dBackwardData, conv2d_backward_data, Conv2dProblem);
CONVOY_NODE(Conv2dBackwardWeights, conv2d_backward_weights, Conv2dProblem);

struct Conv2d {
  static constexpr std::string_view kKind = "conv2d";
  using Nodes = std::tuple<Conv2dForward, Conv2dBackwardData, Conv2dBackwardWeights>;
  std::int64_t filters = 0;
  // Each is {height, width}.
  std::array<int, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int groups = 1;
  bool bias = false;
  bool relu = false;  // set by fuse()
  // If not set, weights are drawn from a normal distribution with variance 2 / fan-out. This suits
  // a ReLU after the layer (He et al. 2015).
  std::optional<Initializer> weight_initializer = std::nullopt;
  Initializer bias_initializer = Initializer::constant(0);

  // Returns a convolution with a square kernel, without groups or dilation.
  static Conv2d square(std::int64_t filters, int kernel, int stride = 1, int padding = 0, bool bias = false) {
    return {filters, {kernel, kernel}, {stride, stride}, {padding, padding}, {1, 1}, 1, bias, false};
  }

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes inputs) const;
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const;
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;

 private:
  kernels::Conv2dProblem problem(const Emitter& emitter) const;
};

}  // namespace convoy::app
