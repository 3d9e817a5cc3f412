#include "app/model/ops/flatten.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Flatten::forward(Emitter& emitter) const {
  emitter.append(ReorderForward{}, {emitter.input()}, {emitter.output()});
}

void Flatten::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(ReorderForward{}, {dy}, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
