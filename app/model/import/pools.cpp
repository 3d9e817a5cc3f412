// Imports ONNX's pooling and padding operations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/model/import/constants.h"
#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

using kernels::PadProblem;
using kernels::PoolKind;

bool is_zero(const PadProblem& pad) {
  return pad.top == 0 && pad.bottom == 0 && pad.left == 0 && pad.right == 0;
}

// Returns whether a pool layer can apply this padding. It must be equal on opposite sides and at
// most half a window.
bool pools_pad(const PadProblem& pad, const WindowAttributes& window) {
  return pad.top == pad.bottom && pad.left == pad.right && pad.top >= 0 && pad.left >= 0 &&
         2 * pad.top <= window.kernel[0] && 2 * pad.left <= window.kernel[1];
}

// Returns whether a Pad and the pool after it can become one pool with padding. Before an average
// pool the Pad must add zeros. Before a max pool it must add a value that is never the maximum.
bool joins_pad(const PadProblem& pad, const WindowAttributes& window, PoolKind kind, bool ceil_mode) {
  const float neutral = kind == PoolKind::average ? 0 : std::numeric_limits<float>::lowest();
  const bool fits = kind == PoolKind::average ? pad.value == neutral : pad.value <= neutral;
  return fits && is_zero(window.pads) && !ceil_mode && pools_pad(pad, window);
}

void give_pool(Importer& importer, const FileNode& node, PoolKind kind, bool count_include_pad) {
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  Value input = importer.unpadded_image(node, 0);
  WindowAttributes window = window_of(node, importer.shape(input.layer), {0, 0}, ceil_mode);
  if (window.dilation != std::array{1, 1}) node.fail("has dilations, which are not supported for pools");
  if (input.pad && joins_pad(*input.pad, window, kind, ceil_mode)) {
    window.pads = *input.pad;
    count_include_pad = true;
  } else if (input.pad) {
    importer.image(node, 0);
    input = importer.unpadded_image(node, 0);
    window = window_of(node, importer.shape(input.layer), {0, 0}, ceil_mode);
  }
  if (!pools_pad(window.pads, window)) {
    if (kind == PoolKind::average && (!count_include_pad || ceil_mode))
      node.fail(
          "pads one side more than the other and leaves the padding out of its averages, which is not "
          "supported");
    window.pads.value = kind == PoolKind::average ? 0 : -std::numeric_limits<float>::infinity();
    input.layer = importer.add(node, Pad{window.pads}, {input.layer});
    window.pads = {};
  }
  Pool pool{kind, window.kernel, window.stride, {window.pads.top, window.pads.left}, ceil_mode};
  pool.count_include_pad = count_include_pad || is_zero(window.pads);
  importer.give(node, importer.add(node, pool, {input.layer}));
}

Pool whole_image(PoolKind kind) {
  Pool pool = Pool::global();
  pool.kind = kind;
  return pool;
}

Dims pads_of(const Importer& importer, const FileNode& node) {
  if (importer.graph().opset < 11) return node.integers("pads").value_or(Dims{});
  const Constant& pads = importer.constant(node, 1);
  if (!pads.is_integer) node.fail("its pads are not integers");
  return pads.integers;
}

void import_max_pool(Importer& importer, const FileNode& node) {
  if (node.outputs.size() > 1 && importer.is_read(node.outputs[1]))
    node.fail("its indices are read, which is not supported");
  give_pool(importer, node, PoolKind::max, true);
}

void import_average_pool(Importer& importer, const FileNode& node) {
  give_pool(importer, node, PoolKind::average, node.integer("count_include_pad", 0) != 0);
}

void import_global_pool(Importer& importer, const FileNode& node) {
  const PoolKind kind = node.op == "GlobalMaxPool" ? PoolKind::max : PoolKind::average;
  importer.give(node, importer.add(node, whole_image(kind), {importer.image(node, 0)}));
}

void import_reduce(Importer& importer, const FileNode& node) {
  const Value input = importer.activation(node, 0);
  const int rank = input.view.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : axes_of(node, importer.optional_constant(node, 1)).value_or(Dims{}))
    reduced[static_cast<std::size_t>(axis_of(node, axis, rank))] = true;
  const Dims dims = input.dims(), layer = input.view.layer();
  const int samples = input.view.place_of(0), channels = input.view.place_of(1);
  Dims kept;
  bool pixels_alone = layer.size() == 4 && samples >= 0 && samples < channels;
  for (int axis = 0; axis < rank; ++axis) {
    const bool of_pixels = axis != samples && axis != channels;
    const bool is_reduced = reduced[static_cast<std::size_t>(axis)];
    const std::int64_t extent = dims[static_cast<std::size_t>(axis)];
    pixels_alone = pixels_alone && (of_pixels ? is_reduced || extent == 1 : !is_reduced);
    if (!is_reduced)
      kept.push_back(extent);
    else if (node.integer("keepdims", 1) != 0)
      kept.push_back(1);
  }
  if (!pixels_alone || std::ranges::find(reduced, true) == reduced.end()) {
    const bool of_samples = samples < 0 || reduced[static_cast<std::size_t>(samples)];
    node.fail(fmt::format(
        "reduces axes of {} that are not the height and width of an image{}", to_string(dims),
        of_samples ? "; a batch norm with track_running_stats=False does so, and is not supported" : ""));
  }
  const PoolKind kind = node.op == "ReduceMax" ? PoolKind::max : PoolKind::average;
  const LayerId pool = importer.add(node, whole_image(kind), {input.layer});
  importer.give(node, {std::nullopt, pool, Arrangement(importer.shape(pool)).reshaped(kept).value()});
}

void import_pad(Importer& importer, const FileNode& node) {
  const Value input = importer.activation(node, 0);
  if (const std::string mode = node.text("mode", "constant"); mode != "constant")
    node.fail(fmt::format("mode is '{}', expected constant", mode));
  const Dims listed = pads_of(importer, node);
  const int rank = input.view.rank();
  const Constant* axes = importer.optional_constant(node, 3);
  const auto places = axes == nullptr ? std::nullopt : axes_of(node, axes);
  const std::size_t count = places ? places->size() : static_cast<std::size_t>(rank);
  if (listed.size() != 2 * count)
    node.fail(fmt::format("has {} pads, expected {}", listed.size(), 2 * count));
  PadProblem pad{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t axis = places ? axis_of(node, (*places)[i], rank) : static_cast<std::int64_t>(i);
    const int before = small(node, "pads", listed[i]), after = small(node, "pads", listed[i + count]);
    if (before == 0 && after == 0) continue;
    if (rank != 4 || axis < 2) node.fail("pads samples or channels, expected height and width");
    (axis == 2 ? pad.top : pad.left) = before;
    (axis == 2 ? pad.bottom : pad.right) = after;
  }
  if (is_zero(pad)) return importer.give(node, input);
  const Constant* value = importer.optional_constant(node, 2);
  if (value != nullptr && value->size() != 1) node.fail("has several values to pad with");
  pad.value = static_cast<float>(value != nullptr ? value->at(0) : node.real("value", 0));
  importer.image(node, 0);
  importer.give(node, {std::nullopt, input.layer, input.view, pad});
}

}  // namespace

const Operations& pool_operations() {
  static const Operations table{
      {"AveragePool",
       import_average_pool,
       {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"}},
      {"GlobalAveragePool", import_global_pool, {}},
      {"GlobalMaxPool", import_global_pool, {}},
      {"MaxPool",
       import_max_pool,
       {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"}},
      {"Pad", import_pad, {"mode", "pads", "value"}},
      {"ReduceMax", import_reduce, {"axes", "keepdims"}},
      {"ReduceMean", import_reduce, {"axes", "keepdims"}},
  };
  return table;
}

}  // namespace convoy::app::onnx_import
