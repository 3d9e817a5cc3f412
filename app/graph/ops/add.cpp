#include "app/model/ops/add.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

namespace {

bool broadcasts(const Emitter& emitter) {
  return emitter.shape(emitter.input(1)) != emitter.shape(emitter.input(0));
}

}  // namespace

void Add::forward(Emitter& emitter) const {
  if (broadcasts(emitter)) return emitter.append(BroadcastAddForward{}, emitter.inputs(), {emitter.output()});
  emitter.append(AddForward{}, emitter.inputs(), {emitter.output()});
}

void Add::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  if (broadcasts(emitter)) {
    emitter.append(BroadcastAddBackward{}, {dy}, {emitter.new_input_gradient(1)});
    if (emitter.wants_gradient(0)) emitter.contribute(0, dy);
    return;
  }
  for (int i = 0; i < emitter.input_count(); ++i)
    if (emitter.wants_gradient(i)) emitter.contribute(i, dy);
}

void Add::write(LayerWriter& onnx) const {
  onnx.node(onnx.layer().inputs.size() == 2 ? "Add" : "Sum", onnx.inputs());
}

}  // namespace convoy::app
