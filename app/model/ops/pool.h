// Pooling layer: maximum or average over windows or over the whole image.
#pragma once

#include <array>

#include "app/model/layer.h"
#include "kernels/pool/pool.h"

namespace convoy::app {

CONVOY_REPEATABLE_NODE(PoolForward, pool_forward, PoolProblem);
CONVOY_NODE(PoolBackward, pool_backward, PoolProblem);

struct Pool {
  static constexpr std::string_view kKind = "pool";
  using Nodes = std::tuple<PoolForward, PoolBackward>;
  kernels::PoolKind kind = kernels::PoolKind::max;
  // Each is {height, width}. A window of 0 stands for the whole image.
  std::array<int, 2> window{2, 2}, stride{2, 2}, padding{0, 0};
  // Whether to keep a last window that is only partly inside the image.
  bool ceil_mode = false;
  // Whether an average also counts the zeros of the padding.
  bool count_include_pad = true;
  // Whether a ReLU is applied to the maxima. Set by fuse().
  bool relu = false;

  static Pool max(int window, int stride, int padding = 0, bool ceil_mode = false) {
    return {kernels::PoolKind::max, {window, window}, {stride, stride}, {padding, padding}, ceil_mode};
  }
  static Pool average(int window, int stride, int padding = 0) {
    return {kernels::PoolKind::average, {window, window}, {stride, stride}, {padding, padding}};
  }
  static Pool global() { return {kernels::PoolKind::average, {0, 0}, {1, 1}}; }

  Shape infer(Shapes inputs) const;
  std::vector<ParameterSpec> parameters(Shapes) const { return {}; }
  std::vector<ParameterSpec> states(Shapes) const { return {}; }
  double flops(Shapes inputs) const;
  std::string attributes() const;
  void forward(Emitter& emitter) const;
  void backward(Emitter& emitter) const;
  void write(LayerWriter& onnx) const;

 private:
  kernels::PoolProblem problem(const Shape& input) const;
};

}  // namespace convoy::app
