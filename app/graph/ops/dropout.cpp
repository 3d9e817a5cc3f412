#include "app/model/ops/dropout.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Dropout::forward(Emitter& emitter) const {
  // In evaluation the rate is 0. The node then copies its input unchanged.
  const float used = emitter.options().training ? rate : 0.0f;
  emitter.append(DropoutForward{{used, emitter.layer_key(), whole_samples}}, {emitter.input()},
                 {emitter.output()});
}

void Dropout::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(DropoutBackward{{rate, emitter.layer_key(), whole_samples}}, {dy},
                 {emitter.new_input_gradient(0)});
}

// ONNX has no stochastic depth (`whole_samples`). It is written as an identity, because it does
// nothing at inference.
void Dropout::write(LayerWriter& onnx) const {
  if (whole_samples)
    onnx.node("Identity", {onnx.input()});
  else
    onnx.node("Dropout", {onnx.input(), onnx.graph().scalar(onnx.part("rate"), rate)});
}

}  // namespace convoy::app
