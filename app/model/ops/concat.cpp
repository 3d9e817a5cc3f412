#include "kernels/concat/concat.h"

#include <fmt/format.h>

#include "app/model/ops/concat.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

Shape Concat::infer(Shapes inputs) const {
  if (inputs.empty()) throw ShapeError("joins nothing, expected one or more tensors");
  Shape joined = inputs[0];
  expect_image(joined);
  joined[1] = 0;
  for (const Shape& input : inputs) {
    expect_image(input);
    if (input[0] != joined[0] || input[2] != joined[2] || input[3] != joined[3])
      throw ShapeError(fmt::format("joins {} and {}, expected equal image sizes", inputs[0].to_string(),
                                   input.to_string()));
    joined[1] += input[1];
  }
  return joined;
}

void Concat::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs;
  for (int i = 0; i < emitter.input_count(); ++i) inputs.push_back(emitter.input(i));
  emitter.node("concat_forward", inputs, {emitter.output()}, [](Backend backend, KernelRequest& request) {
    return kernels::concat_forward(backend, {}, request);
  });
}

void Concat::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  std::vector<TensorId> gradients;
  for (int i = 0; i < emitter.input_count(); ++i) gradients.push_back(emitter.new_input_gradient(i));
  emitter.node("concat_backward", {dy}, gradients, [](Backend backend, KernelRequest& request) {
    return kernels::concat_backward(backend, {}, request);
  });
}

}  // namespace convoy::app
