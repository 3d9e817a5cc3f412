#include "app/model/ops/softmax.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Softmax::forward(Emitter& emitter) const {
  emitter.append(SoftmaxForward{}, {emitter.input()}, {emitter.output()});
}

void Softmax::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(SoftmaxBackward{}, {emitter.output(), dy}, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
