#include "kernels/relu/relu.h"

#include "app/model/ops/relu.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;

Shape Relu::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  return inputs[0];
}

namespace {

void append_backward(Emitter& emitter, TensorId dy, TensorId dx) {
  emitter.node("relu_backward", {emitter.output(), dy}, {dx}, [](Backend backend, KernelRequest& request) {
    return kernels::relu_backward(backend, {}, request);
  });
}

}  // namespace

void Relu::forward(Emitter& emitter) const {
  emitter.node(
      "relu_forward", {emitter.input()}, {emitter.output()},
      [](Backend backend, KernelRequest& request) { return kernels::relu_forward(backend, {}, request); });
}

void Relu::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const TensorId dy = emitter.output_gradient();
  append_backward(emitter, dy, emitter.new_input_gradient(0));
}

TensorId gradient_before_relu(Emitter& emitter) {
  const TensorId dy = emitter.output_gradient();
  const TensorId dx =
      emitter.new_tensor("masked_gradient", emitter.shape(dy), kernels::DType::f32, emitter.output());
  append_backward(emitter, dy, dx);
  return dx;
}

}  // namespace convoy::app
