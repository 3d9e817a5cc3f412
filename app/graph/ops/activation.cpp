#include "app/model/ops/activation.h"

#include "app/graph/emitter.h"

namespace convoy::app {

using kernels::ActivationKind;

void Activation::forward(Emitter& emitter) const {
  emitter.append(ActivationForward{function}, {emitter.input()}, {emitter.output()});
}

void Activation::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  if (function.kind == ActivationKind::affine) {
    // dx = slope dy needs neither x nor y, so neither is kept until backward.
    kernels::ActivationProblem linear = function;
    linear.offset = 0;
    emitter.append(ActivationForward{linear}, {dy}, {emitter.new_input_gradient(0)});
    return;
  }
  const TensorId known = activation_backward_reads_y(function.kind) ? emitter.output() : emitter.input();
  emitter.append(ActivationBackward{function}, {known, dy}, {emitter.new_input_gradient(0)});
}

}  // namespace convoy::app
