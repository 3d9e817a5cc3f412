// Layers with one trained value per channel. Scale multiplies the channel by it (layer scale in
// ConvNeXt), and Bias adds it.
#pragma once

#include "app/model/ops/add.h"
#include "app/model/ops/multiply.h"

namespace convoy::app {

struct Scale {
  static constexpr std::string_view kKind = "scale";
  using Nodes = std::tuple<>;  // the layer uses the operations of Multiply
  double initial_value = 1;

  Shape infer(Shapes inputs) const {
    expect_inputs(inputs, 1);
    return inputs[0];
  }
  std::vector<ParameterSpec> parameters(Shapes inputs) const {
    return {{"weight", {inputs[0][1]}, Initializer::constant(initial_value), false}};
  }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

struct Bias {
  static constexpr std::string_view kKind = "bias";
  using Nodes = std::tuple<>;  // the layer uses the operations of Add

  Shape infer(Shapes inputs) const {
    expect_inputs(inputs, 1);
    return inputs[0];
  }
  std::vector<ParameterSpec> parameters(Shapes inputs) const {
    return {{"bias", {inputs[0][1]}, Initializer::constant(0), false}};
  }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const { return static_cast<double>(inputs[0].elements()); }
  std::string attributes() const { return {}; }
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;
};

}  // namespace convoy::app
