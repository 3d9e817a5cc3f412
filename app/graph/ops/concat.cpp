#include "app/model/ops/concat.h"

#include "app/graph/emitter.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

void Concat::forward(Emitter& emitter) const {
  emitter.append(ConcatForward{}, emitter.inputs(), {emitter.output()});
}

void Concat::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  std::vector<TensorId> gradients;
  for (int i = 0; i < emitter.input_count(); ++i) gradients.push_back(emitter.new_input_gradient(i));
  emitter.append(ConcatBackward{}, {dy}, gradients);
}

void Concat::write(LayerWriter& onnx) const {
  onnx.node("Concat", onnx.inputs()).set("axis", std::int64_t{1});
}

}  // namespace convoy::app
