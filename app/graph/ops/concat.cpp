#include "app/model/ops/concat.h"

#include "app/graph/emitter.h"

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

}  // namespace convoy::app
