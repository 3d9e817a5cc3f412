#include "app/graph/ops/relu.h"

#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Relu::forward(Emitter& emitter) const {
  emitter.append(ReluForward{}, {emitter.input()}, {emitter.output()});
}

void Relu::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(ReluBackward{}, {emitter.output(), dy}, {emitter.new_input_gradient(0)});
}

TensorId gradient_before_relu(Emitter& emitter) {
  const TensorId dy = emitter.output_gradient();
  const TensorId dx =
      emitter.new_tensor("masked_gradient", emitter.shape(dy), kernels::DType::f32, emitter.output());
  emitter.append(ReluBackward{}, {emitter.output(), dy}, {dx});
  return dx;
}

void Relu::write(LayerWriter& onnx) const { onnx.node("Relu", {onnx.input()}); }

}  // namespace convoy::app
