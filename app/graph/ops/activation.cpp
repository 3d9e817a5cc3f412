#include "app/model/ops/activation.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using kernels::ActivationKind;

namespace {

// Writes GELU as PyTorch does: x (1 + erf(x / sqrt(2))) / 2, or the approximation with tanh.
void write_gelu(LayerWriter& onnx, bool tanh) {
  std::string inner = onnx.part("scaled");
  if (tanh) {
    onnx.graph().node("Mul", {onnx.input(), onnx.input()}, onnx.part("square"));
    onnx.graph().node("Mul", {onnx.part("square"), onnx.input()}, onnx.part("cube"));
    onnx.graph().node("Mul", {onnx.part("cube"), onnx.graph().scalar(onnx.part("cubic"), 0.044715f)},
                      onnx.part("small"));
    onnx.graph().node("Add", {onnx.input(), onnx.part("small")}, onnx.part("sum"));
    const auto factor = static_cast<float>(std::sqrt(2.0 / std::numbers::pi));
    onnx.graph().node("Mul", {onnx.part("sum"), onnx.graph().scalar(onnx.part("factor"), factor)}, inner);
  } else {
    const auto root = static_cast<float>(std::numbers::sqrt2);
    onnx.graph().node("Div", {onnx.input(), onnx.graph().scalar(onnx.part("root"), root)}, inner);
  }
  onnx.graph().node(tanh ? "Tanh" : "Erf", {inner}, onnx.part("curve"));
  onnx.graph().node("Add", {onnx.part("curve"), onnx.graph().scalar(onnx.part("one"), 1)},
                    onnx.part("raised"));
  onnx.graph().node("Mul", {onnx.input(), onnx.part("raised")}, onnx.part("product"));
  onnx.node("Mul", {onnx.part("product"), onnx.graph().scalar(onnx.part("half"), 0.5f)});
}

}  // namespace

void Activation::forward(Emitter& emitter) const {
  emitter.append(ActivationForward{function}, {emitter.input()}, {emitter.output()});
}

void Activation::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  if (function.kind == ActivationKind::affine) {
    // dx = slope dy needs neither x nor y, so neither is kept until backward.
    kernels::ActivationProblem linear = function;
    linear.offset = 0;
    emitter.append(ActivationForward{linear}, {dy}, {emitter.new_input_gradient(0)});
    return;
  }
  const TensorId known = activation_backward_reads_y(function.kind) ? emitter.output() : emitter.input();
  emitter.append(ActivationBackward{function}, {known, dy}, {emitter.new_input_gradient(0)});
}

void Activation::write(LayerWriter& onnx) const {
  const kernels::ActivationProblem& f = function;
  const auto bound = [&](const char* name, float value) {
    return std::isinf(value) ? std::string() : onnx.graph().scalar(onnx.part(name), value);
  };
  switch (f.kind) {
    case ActivationKind::clip: {
      const std::string low = bound("min", f.min), high = bound("max", f.max);
      onnx.node("Clip", {onnx.input(), low, high});
      return;
    }
    case ActivationKind::leaky_relu:
      onnx.node("LeakyRelu", {onnx.input()}).set("alpha", f.slope);
      return;
    case ActivationKind::sigmoid:
      onnx.node("Sigmoid", {onnx.input()});
      return;
    case ActivationKind::hard_sigmoid:
      onnx.node("HardSigmoid", {onnx.input()}).set("alpha", f.slope).set("beta", f.offset);
      return;
    case ActivationKind::hard_swish:
      onnx.node("HardSwish", {onnx.input()});
      return;
    case ActivationKind::silu:
      onnx.graph().node("Sigmoid", {onnx.input()}, onnx.part("sigmoid"));
      onnx.node("Mul", {onnx.input(), onnx.part("sigmoid")});
      return;
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh:
      return write_gelu(onnx, f.kind == ActivationKind::gelu_tanh);
    case ActivationKind::affine:
      onnx.graph().node("Mul", {onnx.input(), onnx.graph().scalar(onnx.part("slope"), f.slope)},
                        onnx.part("scaled"));
      onnx.node("Add", {onnx.part("scaled"), onnx.graph().scalar(onnx.part("offset"), f.offset)});
      return;
  }
  throw std::logic_error("an activation that export does not know");
}

}  // namespace convoy::app
