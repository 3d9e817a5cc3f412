#include "app/model/ops/scale.h"

#include "app/graph/emitter.h"

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

}  // namespace convoy::app
