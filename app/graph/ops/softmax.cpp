#include "app/model/ops/softmax.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Softmax::forward(Emitter& emitter) const {
  emitter.append(SoftmaxForward{}, {emitter.input()}, {emitter.output()});
}

void Softmax::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(SoftmaxBackward{}, {emitter.output(), dy}, {emitter.new_input_gradient(0)});
}

void Softmax::write(LayerWriter& onnx) const {
  onnx.node("Softmax", {onnx.input()}).set("axis", std::int64_t{1});
}

}  // namespace convoy::app
