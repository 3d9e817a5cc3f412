#include "app/model/ops/pad.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Pad::forward(Emitter& emitter) const {
  emitter.append(PadForward{amounts}, {emitter.input()}, {emitter.output()});
}

void Pad::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(PadBackward{amounts}, {dy}, {emitter.new_input_gradient(0)});
}

void Pad::write(LayerWriter& onnx) const {
  const std::string pads = onnx.graph().constant(
      onnx.part("amounts"), {0, 0, amounts.top, amounts.left, 0, 0, amounts.bottom, amounts.right});
  onnx.node("Pad", {onnx.input(), pads, onnx.graph().scalar(onnx.part("value"), amounts.value)});
}

}  // namespace convoy::app
