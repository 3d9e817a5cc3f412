#include "app/model/ops/flatten.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Flatten::forward(Emitter& emitter) const {
  emitter.append(ReorderForward{}, {emitter.input()}, {emitter.output()});
}

void Flatten::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(ReorderForward{}, {dy}, {emitter.new_input_gradient(0)});
}

void Flatten::write(LayerWriter& onnx) const {
  onnx.node("Flatten", {onnx.input()}).set("axis", std::int64_t{1});
}

}  // namespace convoy::app
