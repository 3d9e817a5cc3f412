#include "app/model/ops/group_norm.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void GroupNorm::forward(Emitter& emitter) const {
  const TensorId moments =
      emitter.new_full_precision("moments", Shape{2 * emitter.shape(emitter.input())[0] * groups});
  emitter.save("moments", moments);
  emitter.append(GroupNormForward{{groups, epsilon}},
                 {emitter.input(), emitter.parameter("weight"), emitter.parameter("bias")},
                 {emitter.output(), moments});
}

void GroupNorm::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(GroupNormBackward{{groups, epsilon}},
                 {emitter.input(), emitter.parameter("weight"), dy, emitter.saved("moments")},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight"),
                  emitter.parameter_gradient("bias")});
}

}  // namespace convoy::app
