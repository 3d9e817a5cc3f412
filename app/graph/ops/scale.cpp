#include "app/model/ops/scale.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Scale::forward(Emitter& emitter) const {
  emitter.append(MultiplyForward{}, {emitter.input(), emitter.parameter("weight")}, {emitter.output()});
}

void Scale::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(MultiplyBackward{}, {emitter.input(), emitter.parameter("weight"), dy},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight")});
}

void Bias::forward(Emitter& emitter) const {
  emitter.append(BroadcastAddForward{}, {emitter.input(), emitter.parameter("bias")}, {emitter.output()});
}

void Bias::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  if (emitter.trains({"bias"}))
    emitter.append(BroadcastAddBackward{}, {dy}, {emitter.parameter_gradient("bias")});
  if (emitter.wants_gradient(0)) emitter.contribute(0, dy);
}

void Scale::write(LayerWriter& onnx) const {
  onnx.node("Mul", {onnx.input(), onnx.parameter("weight", onnx.over_channels(onnx.shape()[1]))});
}

void Bias::write(LayerWriter& onnx) const {
  onnx.node("Add", {onnx.input(), onnx.parameter("bias", onnx.over_channels(onnx.shape()[1]))});
}

}  // namespace convoy::app
