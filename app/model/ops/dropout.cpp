#include "kernels/dropout/dropout.h"

#include <fmt/format.h>

#include "app/model/ops/dropout.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

Shape Dropout::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  if (!(rate >= 0 && rate < 1)) throw ShapeError(fmt::format("rate {}, expected 0 <= rate < 1", rate));
  return inputs[0];
}

std::string Dropout::attributes() const { return fmt::format("rate {}", rate); }

void Dropout::forward(Emitter& emitter) const {
  // Evaluation passes its input through; in training so does a rate of zero, at the price of a copy.
  const kernels::DropoutProblem problem{emitter.options().training ? rate : 0.0f, emitter.layer_key()};
  emitter.node("dropout_forward", {emitter.input()}, {emitter.output()},
               [problem](Backend backend, KernelRequest& request) {
                 return kernels::dropout_forward(backend, problem, request);
               });
}

void Dropout::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const kernels::DropoutProblem problem{rate, emitter.layer_key()};
  const TensorId dy = emitter.output_gradient();
  emitter.node("dropout_backward", {dy}, {emitter.new_input_gradient(0)},
               [problem](Backend backend, KernelRequest& request) {
                 return kernels::dropout_backward(backend, problem, request);
               });
}

}  // namespace convoy::app
