#include "app/model/ops/pad.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Pad::forward(Emitter& emitter) const {
  emitter.append(PadForward{amounts}, {emitter.input()}, {emitter.output()});
}

void Pad::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  emitter.append(PadBackward{amounts}, {dy}, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
