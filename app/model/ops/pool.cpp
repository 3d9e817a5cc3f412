#include "app/model/ops/pool.h"

#include <fmt/format.h>

#include "app/model/ops/relu.h"

namespace convoy::app {

using kernels::Backend;
using kernels::KernelRequest;
using kernels::PoolKind;

kernels::PoolProblem Pool::problem(const Shape& input) const {
  const int height = window > 0 ? window : static_cast<int>(input[2]);
  const int width = window > 0 ? window : static_cast<int>(input[3]);
  kernels::PoolProblem problem;
  problem.kind = kind;
  problem.kernel = {height, width};
  problem.stride = {stride, stride};
  problem.padding = {padding, padding};
  problem.ceil_mode = ceil_mode;
  problem.relu = relu;
  return problem;
}

Shape Pool::infer(Shapes inputs) const {
  expect_inputs(inputs, 1);
  expect_image(inputs[0]);
  const kernels::PoolProblem pool = problem(inputs[0]);
  if (stride < 1 || padding < 0 || 2 * padding > pool.kernel[0])
    throw ShapeError(
        fmt::format("stride {}, padding {}, window {}: expected stride above zero and padding at most half "
                    "of the window",
                    stride, padding, window));
  if (inputs[0][2] + 2 * padding < pool.kernel[0] || inputs[0][3] + 2 * padding < pool.kernel[1])
    throw ShapeError(fmt::format("its window of {}x{} does not fit into {}", pool.kernel[0], pool.kernel[1],
                                 inputs[0].to_string()));
  return kernels::pool_output_shape(pool, inputs[0]);
}

double Pool::flops(Shapes inputs) const {
  const kernels::PoolProblem pool = problem(inputs[0]);
  return static_cast<double>(infer(inputs).elements()) * pool.kernel[0] * pool.kernel[1];
}

std::string Pool::attributes() const {
  const char* name = kind == PoolKind::max ? "max" : "average";
  if (window == 0) return fmt::format("{} global", name);
  return fmt::format("{} {}x{}, stride {}{}{}{}", name, window, window, stride,
                     padding > 0 ? fmt::format(", padding {}", padding) : "", ceil_mode ? ", ceil" : "",
                     relu ? ", relu" : "");
}

void Pool::forward(Emitter& emitter) const {
  const auto pool = problem(emitter.shape(emitter.input()));
  std::vector<TensorId> outputs{emitter.output()};
  if (kind == PoolKind::max) {
    outputs.push_back(emitter.new_tensor("argmax", emitter.shape(emitter.output()), kernels::DType::i32));
    emitter.save("argmax", outputs[1]);
  }
  emitter.node("pool_forward", {emitter.input()}, outputs, [pool](Backend backend, KernelRequest& request) {
    return kernels::pool_forward(backend, pool, request);
  });
}

void Pool::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  const auto pool = problem(emitter.shape(emitter.input()));
  std::vector<TensorId> inputs{relu ? gradient_before_relu(emitter) : emitter.output_gradient()};
  if (kind == PoolKind::max) inputs.insert(inputs.begin(), emitter.saved("argmax"));
  emitter.node("pool_backward", inputs, {emitter.new_input_gradient(0)},
               [pool](Backend backend, KernelRequest& request) {
                 return kernels::pool_backward(backend, pool, request);
               });
}

}  // namespace convoy::app
