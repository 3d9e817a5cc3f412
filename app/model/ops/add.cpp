#include "app/model/ops/add.h"

#include <fmt/format.h>

#include "kernels/add/add.h"

namespace convoy::app {

Shape Add::infer(Shapes inputs) const {
  if (inputs.size() < 2)
    throw ShapeError(fmt::format("adds {} tensors, expected two or more", inputs.size()));
  for (const Shape& input : inputs)
    if (input != inputs[0])
      throw ShapeError(
          fmt::format("adds {} and {}, expected equal shapes", inputs[0].to_string(), input.to_string()));
  return inputs[0];
}

void Add::forward(Emitter& emitter) const {
  std::vector<TensorId> inputs;
  for (int i = 0; i < emitter.input_count(); ++i) inputs.push_back(emitter.input(i));
  emitter.node("add_forward", inputs, {emitter.output()},
               [](kernels::Backend backend, kernels::KernelRequest& request) {
                 return kernels::add_forward(backend, {}, request);
               });
  emitter.allow_statistics([](kernels::Backend backend, kernels::KernelRequest& request) {
    return kernels::add_forward(backend, {.statistics = true}, request);
  });
}

void Add::backward(Emitter& emitter) const {
  const TensorId dy = emitter.output_gradient();
  for (int i = 0; i < emitter.input_count(); ++i)
    if (emitter.wants_gradient(i)) emitter.contribute(i, dy);
}

}  // namespace convoy::app
