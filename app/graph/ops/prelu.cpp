#include "app/model/ops/prelu.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void Prelu::forward(Emitter& emitter) const {
  emitter.append(PreluForward{}, {emitter.input(), emitter.parameter("weight")}, {emitter.output()});
}

void Prelu::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(PreluBackward{}, {emitter.input(), emitter.parameter("weight"), dy},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight")});
}

}  // namespace convoy::app
