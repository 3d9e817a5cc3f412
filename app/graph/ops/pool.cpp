#include "app/model/ops/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "app/graph/ops/relu.h"
#include "app/model/export/layer_writer.h"

namespace convoy::app {

using kernels::PoolKind;
using onnx_export::Dims;

namespace {

// Returns the padding at the end of each axis. With ceil_mode, ONNX keeps a last window that starts
// in the padding, but Convoy and PyTorch leave it out. Such a pool is written without ceil_mode,
// with padding that gives the same windows as in Convoy. Throws std::runtime_error if an average
// would then count padding that Convoy does not count.
std::array<std::int64_t, 2> end_padding(const LayerWriter& onnx, const Pool& pool, bool& ceil_mode) {
  std::array<std::int64_t, 2> end{pool.padding[0], pool.padding[1]};
  if (!pool.ceil_mode) return end;
  std::array<std::int64_t, 2> needed{};
  ceil_mode = true;
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t extent = onnx.shape()[axis + 2], stride = pool.stride[axis],
                       window = pool.window[axis];
    const std::int64_t windows = onnx.layer().output[axis + 2],
                       room = extent + 2 * pool.padding[axis] - window;
    if (windows != (room + stride - 1) / stride + 1) ceil_mode = false;
    needed[axis] = std::max<std::int64_t>(0, (windows - 1) * stride + window - extent - pool.padding[axis]);
  }
  if (ceil_mode) return end;
  if (pool.kind == PoolKind::average && pool.count_include_pad && (needed[0] > end[0] || needed[1] > end[1]))
    throw std::runtime_error(fmt::format(
        "{}: an average pool with ceil_mode whose last window ends beyond the padding on one axis "
        "and is left out on the other, which ONNX has no form for",
        onnx.layer().name));
  return needed;
}

}  // namespace

void Pool::forward(Emitter& emitter) const {
  std::vector<TensorId> outputs{emitter.output()};
  if (kind == PoolKind::max) {
    outputs.push_back(emitter.new_tensor("argmax", emitter.shape(emitter.output()), kernels::DType::i32));
    emitter.save("argmax", outputs[1]);
  }
  emitter.append(PoolForward{problem(emitter.shape(emitter.input()))}, {emitter.input()}, outputs);
}

void Pool::backward(Emitter& emitter) const {
  if (!emitter.wants_gradient(0)) return;
  std::vector<TensorId> inputs{relu ? gradient_before_relu(emitter) : emitter.output_gradient()};
  if (kind == PoolKind::max) inputs.insert(inputs.begin(), emitter.saved("argmax"));
  const PoolBackward pool{problem(emitter.shape(emitter.input()))};
  emitter.append(pool, inputs, {emitter.new_input_gradient(0)});
}

void Pool::write(LayerWriter& onnx) const {
  if (relu) throw std::logic_error("export of a fused network");
  const bool max = kind == PoolKind::max;
  if (window[0] == 0) {
    onnx.node(max ? "GlobalMaxPool" : "GlobalAveragePool", {onnx.input()});
    return;
  }
  bool ceil_mode = false;
  const auto end = end_padding(onnx, *this, ceil_mode);
  onnx_export::OnnxNode node = onnx.node(max ? "MaxPool" : "AveragePool", {onnx.input()});
  node.set("kernel_shape", Dims{window[0], window[1]})
      .set("strides", Dims{stride[0], stride[1]})
      .set("pads", Dims{padding[0], padding[1], end[0], end[1]})
      .set("ceil_mode", std::int64_t{ceil_mode});
  if (!max) node.set("count_include_pad", std::int64_t{count_include_pad});
}

}  // namespace convoy::app
