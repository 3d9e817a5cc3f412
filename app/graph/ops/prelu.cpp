#include "app/model/ops/prelu.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using onnx_export::Dims;

void Prelu::forward(Emitter& emitter) const {
  emitter.append(PreluForward{}, {emitter.input(), emitter.parameter("weight")}, {emitter.output()});
}

void Prelu::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(PreluBackward{}, {emitter.input(), emitter.parameter("weight"), dy},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight")});
}

void Prelu::write(LayerWriter& onnx) const {
  onnx.node("PRelu", {onnx.input(),
                      onnx.parameter("weight", per_channel ? onnx.over_channels(onnx.shape()[1]) : Dims{1})});
}

}  // namespace convoy::app
