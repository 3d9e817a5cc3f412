#include "app/model/ops/layer_norm.h"

#include "app/graph/emitter.h"

namespace convoy::app {

void LayerNorm::forward(Emitter& emitter) const {
  const TensorId moments =
      emitter.new_full_precision("moments", kernels::layer_norm_moments(emitter.shape(emitter.input())));
  emitter.save("moments", moments);
  emitter.append(LayerNormForward{{epsilon}},
                 {emitter.input(), emitter.parameter("weight"), emitter.parameter("bias")},
                 {emitter.output(), moments});
}

void LayerNorm::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  emitter.append(LayerNormBackward{{epsilon}},
                 {emitter.input(), emitter.parameter("weight"), dy, emitter.saved("moments")},
                 {emitter.new_input_gradient(0), emitter.parameter_gradient("weight"),
                  emitter.parameter_gradient("bias")});
}

}  // namespace convoy::app
