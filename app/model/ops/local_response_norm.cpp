#include "kernels/local_response_norm/local_response_norm.h"

#include <fmt/format.h>

#include "app/model/ops/local_response_norm.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

Shape LocalResponseNorm::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  if (size < 1 || size % 2 == 0)
    throw ShapeError(fmt::format("size {}, expected an odd number of channels", size));
  return inputs[0];
}

std::string LocalResponseNorm::attributes() const {
  return fmt::format("size {}, alpha {}, beta {}, k {}", size, alpha, beta, k);
}

void LocalResponseNorm::forward(Emitter& emitter) const {
  const kernels::LocalResponseNormProblem problem{size, alpha, beta, k};
  const TensorId scale = emitter.new_tensor("scale", emitter.shape(emitter.output()));
  emitter.save("scale", scale);
  emitter.node("local_response_norm_forward", {emitter.input()}, {emitter.output(), scale},
               [problem](Backend backend, KernelRequest& request) {
                 return kernels::local_response_norm_forward(backend, problem, request);
               });
}

void LocalResponseNorm::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const kernels::LocalResponseNormProblem problem{size, alpha, beta, k};
  const TensorId dy = emitter.output_gradient();
  emitter.node("local_response_norm_backward",
               {emitter.input(), emitter.output(), emitter.saved("scale"), dy},
               {emitter.new_input_gradient(0)}, [problem](Backend backend, KernelRequest& request) {
                 return kernels::local_response_norm_backward(backend, problem, request);
               });
}

}  // namespace convoy::app
