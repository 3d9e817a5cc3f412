// Imports ONNX's operations that move elements: changes of shape, and splitting and joining of
// channels.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/model/import/constants.h"
#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

void give_reshaped(Importer& importer, const FileNode& node, Value input, const Dims& dims) {
  auto view = input.view.reshaped(dims);
  if (!view)
    node.fail(fmt::format("makes {} of {}, which mixes samples, channels and pixels", to_string(dims),
                          to_string(input.dims())));
  input.view = std::move(*view);
  importer.give(node, std::move(input));
}

Value input_of(Importer& importer, const FileNode& node) { return importer.activation(node, 0); }

// Imports a node whose output number `output` is a range of its input: `count` indices along
// `axis`, from `begin` on. The axis must be the channels, or the rows or columns of an image.
void give_range(Importer& importer, const FileNode& node, const Value& input, std::int64_t axis,
                std::int64_t begin, std::int64_t count, std::size_t output = 0) {
  const Dims dims = input.dims();
  const std::int64_t extent = dims[static_cast<std::size_t>(axis)];
  if (begin == 0 && count == extent) return importer.give(node, input, output);
  if (output < node.outputs.size() && !importer.is_read(node.outputs[output])) return;
  if (const auto range = input.view.channel_range(static_cast<int>(axis), begin, count)) {
    const LayerId layer = importer.add(node, Slice{range->begin, range->count}, {input.layer});
    return importer.give(node, {std::nullopt, layer, range->view}, output);
  }
  if (!input.view.is_plain() || dims.size() != 4 || axis < 2)
    node.fail(fmt::format("takes a part of axis {} of {}, expected channels, rows or columns", axis,
                          to_string(dims)));
  kernels::PadProblem cut{};
  (axis == 2 ? cut.top : cut.left) = -small(node, "start", begin);
  (axis == 2 ? cut.bottom : cut.right) = -small(node, "end", extent - begin - count);
  importer.give(node, importer.add(node, Pad{cut}, {input.layer}), output);
}

// Imports a node that takes every `step`-th row or column of an image. It becomes a pool with a
// window of one pixel.
void give_every(Importer& importer, const FileNode& node, std::int64_t axis, int step) {
  const LayerId image = importer.image(node, 0);
  if (axis < 2)
    node.fail(fmt::format("takes channels or samples in steps of {}, which is not supported", step));
  const std::array stride{axis == 2 ? step : 1, axis == 2 ? 1 : step};
  importer.give(node, importer.add(node, Pool{kernels::PoolKind::average, {1, 1}, stride}, {image}));
}

void import_reshape(Importer& importer, const FileNode& node) {
  Value input = input_of(importer, node);
  const Constant& target = importer.constant(node, 1);
  if (!target.is_integer || target.dims.size() != 1) node.fail("its target is not a vector of integers");
  give_reshaped(importer, node, input, reshaped_dims(node, input.dims(), target.integers));
}

void import_flatten(Importer& importer, const FileNode& node) {
  Value input = input_of(importer, node);
  const Dims dims = input.dims();
  const std::int64_t axis = node.integer("axis", 1);
  const auto first =
      static_cast<std::ptrdiff_t>(axis == std::ssize(dims) ? axis : axis_of(node, axis, std::ssize(dims)));
  const Dims flat{elements_of({dims.begin(), dims.begin() + first}),
                  elements_of({dims.begin() + first, dims.end()})};
  give_reshaped(importer, node, std::move(input), flat);
}

void import_squeeze(Importer& importer, const FileNode& node) {
  Value input = input_of(importer, node);
  const Dims dims = squeezed_dims(node, input.dims(), importer.optional_constant(node, 1), 1);
  give_reshaped(importer, node, std::move(input), dims);
}

void import_unsqueeze(Importer& importer, const FileNode& node) {
  Value input = input_of(importer, node);
  const Dims dims = unsqueezed_dims(node, input.dims(), importer.optional_constant(node, 1));
  give_reshaped(importer, node, std::move(input), dims);
}

void import_transpose(Importer& importer, const FileNode& node) {
  Value input = input_of(importer, node);
  Dims order;
  for (int axis = input.view.rank(); axis-- > 0;) order.push_back(axis);
  auto view = input.view.transposed(node.integers("perm").value_or(order));
  if (!view) node.fail(fmt::format("has a wrong order of the axes of {}", to_string(input.dims())));
  input.view = std::move(*view);
  importer.give(node, std::move(input));
}

void import_concat(Importer& importer, const FileNode& node) {
  std::vector<Value> parts;
  std::vector<LayerId> layers;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    parts.push_back(importer.activation(node, i));
    layers.push_back(parts.back().layer);
  }
  if (parts.empty()) node.fail("joins nothing");
  const Arrangement& first = parts[0].view;
  const std::int64_t axis = axis_of(node, node.integer("axis", 1), first.rank());
  for (const Value& part : parts)
    if (axis != first.place_of(1) || !part.view.has_order_of(first) || part.view.layer().size() != 4)
      node.fail(fmt::format("joins {} and {} along axis {}, expected images joined along the channels",
                            to_string(parts[0].dims()), to_string(part.dims()), axis));
  const LayerId layer = importer.add(node, Concat{}, layers);
  importer.give(node, {std::nullopt, layer, first.with_channels(importer.shape(layer)[1])});
}

void import_split(Importer& importer, const FileNode& node) {
  const Value input = importer.activation(node, 0);
  const std::int64_t axis = axis_of(node, node.integer("axis", 0), input.view.rank());
  const std::int64_t extent = input.dims()[static_cast<std::size_t>(axis)];
  const auto outputs = std::ssize(node.outputs);
  Dims counts = node.integers("split").value_or(Dims{});
  if (const Constant* listed = importer.optional_constant(node, 1)) counts = listed->integers;
  // By default, all parts have the same size, except that the last may be smaller.
  if (counts.empty()) {
    const std::int64_t each = (extent + outputs - 1) / outputs;
    for (std::int64_t i = 0; i < outputs; ++i) counts.push_back(std::min(each, extent - i * each));
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (i >= counts.size() || counts[i] < 1 || counts[i] > extent - begin)
      node.fail(fmt::format("cuts {} elements into parts of {}", extent, to_string(counts)));
    give_range(importer, node, input, axis, begin, counts[i], i);
    begin += counts[i];
  }
  if (begin != extent) node.fail(fmt::format("cuts {} elements into parts of {}", extent, to_string(counts)));
}

void import_slice(Importer& importer, const FileNode& node) {
  const auto numbers = [&](std::size_t input, const char* attribute) -> std::optional<Dims> {
    if (const Constant* given = importer.optional_constant(node, input)) {
      if (!given->is_integer) node.fail(fmt::format("its {} are not integers", attribute));
      return given->integers;
    }
    return node.integers(attribute);
  };
  const Dims starts = numbers(1, "starts").value_or(Dims{}), ends = numbers(2, "ends").value_or(Dims{});
  Dims all;
  for (std::int64_t i = 0; i < std::ssize(starts); ++i) all.push_back(i);
  const Dims axes = numbers(3, "axes").value_or(all),
             steps = numbers(4, "steps").value_or(Dims(starts.size(), 1));
  if (starts.empty() || ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    node.fail("has starts, ends, axes and steps that do not belong together");
  FileNode part = node;  // slice one axis after the other
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Value input = importer.activation(part, 0);
    const std::int64_t axis = axis_of(node, axes[i], input.view.rank());
    const std::int64_t extent = input.dims()[static_cast<std::size_t>(axis)];
    const auto clamped = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const std::int64_t begin = clamped(starts[i]), count = clamped(ends[i]) - begin;
    if (steps[i] < 1 || count < 1)
      node.fail(fmt::format("takes elements {} to {} in steps of {}, which is not supported", starts[i],
                            ends[i], steps[i]));
    give_range(importer, node, input, axis, begin, count);
    part.inputs[0] = node.outputs[0];
    if (steps[i] > 1) give_every(importer, part, axis, small(node, "step", steps[i]));
  }
}

void import_gather(Importer& importer, const FileNode& node) {
  const Constant& index = importer.constant(node, 1);
  const Value input = importer.activation(node, 0);
  const std::int64_t axis = axis_of(node, node.integer("axis", 0), input.view.rank());
  Dims dims = input.dims();
  const std::int64_t extent = dims[static_cast<std::size_t>(axis)];
  if (!index.is_integer || index.size() != 1) node.fail("takes several elements, expected one channel");
  const std::int64_t at = index.integers[0] < 0 ? index.integers[0] + extent : index.integers[0];
  if (at < 0 || at >= extent) node.fail(fmt::format("takes element {} of {}", index.integers[0], extent));
  if (input.layer == 0 && extent == 3)
    node.fail(
        "takes one channel of the images. Export googlenet and inception_v3 with transform_input=False; the "
        "data set's mean and deviation do its work");
  give_range(importer, node, input, axis, at, 1);
  FileNode part = node;
  part.inputs[0] = node.outputs[0];
  if (!index.dims.empty()) return;
  dims.erase(dims.begin() + axis);
  give_reshaped(importer, node, importer.activation(part, 0), dims);
}

void import_shape(Importer& importer, const FileNode& node) {
  const Dims dims = importer.activation(node, 0).dims();
  const auto rank = std::ssize(dims);
  const auto place = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t at = node.integer(name, otherwise);
    return static_cast<std::ptrdiff_t>(std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank));
  };
  const std::ptrdiff_t begin = place("start", 0), end = std::max(place("end", rank), begin);
  const Dims part(dims.begin() + begin, dims.begin() + end);
  importer.give(node, {Constant::of_integers({std::ssize(part)}, part), 0, {}});
}

}  // namespace

const Operations& move_operations() {
  static const Operations table{
      {"Concat", import_concat, {"axis"}},
      {"Flatten", import_flatten, {"axis"}},
      {"Gather", import_gather, {"axis"}},
      {"Reshape", import_reshape, {"allowzero"}},
      {"Shape", import_shape, {"end", "start"}},
      {"Slice", import_slice, {"axes", "ends", "starts"}},
      {"Split", import_split, {"axis", "num_outputs", "split"}},
      {"Squeeze", import_squeeze, {"axes"}},
      {"Transpose", import_transpose, {"perm"}},
      {"Unsqueeze", import_unsqueeze, {"axes"}},
  };
  return table;
}

}  // namespace convoy::app::onnx_import
