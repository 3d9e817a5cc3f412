#include "app/model/ops/multiply.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Multiply::forward(Emitter& emitter) const {
  emitter.append(MultiplyForward{}, emitter.inputs(), {emitter.output()});
}

void Multiply::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(MultiplyBackward{}, {emitter.input(0), emitter.input(1), dy},
                 {emitter.new_input_gradient(0), emitter.new_input_gradient(1)});
}

void Multiply::write(LayerWriter& onnx) const { onnx.node("Mul", onnx.inputs()); }

}  // namespace convoy::app
