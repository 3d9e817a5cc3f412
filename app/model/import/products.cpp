// Imports ONNX's convolutions and fully connected layers.
#include <fmt/format.h>

#include <algorithm>

#include "app/model/import/constants.h"
#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

// Sets the padding for auto_pad SAME_UPPER or SAME_LOWER. The output gets the extent ceil(extent /
// stride).
void pad_to_same(const FileNode& node, WindowAttributes& window, const Dims& image, bool upper) {
  std::array<int, 2> before{}, after{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t extent = image[axis + 2], stride = window.stride[axis];
    const std::int64_t reach = std::int64_t{window.dilation[axis]} * (window.kernel[axis] - 1) + 1;
    const std::int64_t total =
        std::max<std::int64_t>(((extent + stride - 1) / stride - 1) * stride + reach - extent, 0);
    const int less = small(node, "padding", total / 2), more = small(node, "padding", total - total / 2);
    before[axis] = upper ? less : more;
    after[axis] = upper ? more : less;
  }
  window.pads = {before[0], after[0], before[1], after[1], 0};
}

// Returns the weights as a matrix [outputs, inputs]. They are [inputs, outputs] in the file if
// `is_transposed` is set.
Constant matrix_of(const FileNode& node, const Constant& weight, bool is_transposed) {
  if (weight.is_integer || weight.dims.size() != 2)
    node.fail(fmt::format("its weights have the shape {}, expected a matrix", to_string(weight.dims)));
  return is_transposed ? transposed(weight, {1, 0}) : weight;
}

// Returns whether a later node reshapes the node's output to an image, as for the gates of
// squeeze-and-excitation. Such a product is imported as a convolution, not as a linear layer.
bool becomes_image(const Importer& importer, const FileNode& node) {
  const FileNode* at = &node;
  for (int steps = 0; at != nullptr && steps < 16; ++steps) {
    at = importer.only_reader(at->outputs[0]);
    if (at == nullptr || at->op == "Gemm" || at->op == "MatMul")
      return at != nullptr && becomes_image(importer, *at);
    if (at->op == "Unsqueeze" || at->op == "Reshape") return true;
  }
  return false;
}

// Adds a layer that computes y = W x + b over the channels of a value. `matrix` is W, [outputs,
// inputs].
void give_product(Importer& importer, const FileNode& node, const Constant& matrix, const Constant* bias) {
  const Value input = importer.activation(node, 0);
  const std::int64_t outputs = matrix.dims[0];
  const bool flat = input.view.is_flat();
  const Dims layer = input.view.layer();
  const bool pixel = layer.size() == 4 && layer[2] == 1 && layer[3] == 1;
  if (flat && !(pixel && becomes_image(importer, node))) {
    const Dims dims = input.dims();
    if (dims[1] != matrix.dims[1])
      node.fail(fmt::format("reads {} values a sample, but its weights are for {}", dims[1], matrix.dims[1]));
    if (bias == nullptr) bias = importer.take_bias(node, 1, 2, outputs);
    const LayerId linear = importer.add(node, Linear{outputs, bias != nullptr}, {input.layer}, &matrix);
    importer.bind(node, linear, "weight", matrix);
    if (bias != nullptr) importer.bind(node, linear, "bias", *bias);
    return importer.give_with_bias(node, {std::nullopt, linear, Arrangement(importer.shape(linear))});
  }
  const int place = input.view.place_of(1), rank = input.view.rank();
  if (layer.size() != 4 || place != rank - 1 || layer[1] != matrix.dims[1])
    node.fail(fmt::format(
        "multiplies a value of the shape {} by a matrix of {}; expected the channels in the last place, "
        "or a flattened image with channels before pixels",
        to_string(input.dims()), to_string(matrix.dims)));
  if (bias == nullptr) bias = importer.take_bias(node, place, rank, outputs);
  const LayerId conv =
      importer.add(node, Conv2d::square(outputs, 1, 1, 0, bias != nullptr), {input.layer}, &matrix);
  importer.bind(node, conv, "weight", matrix);
  if (bias != nullptr) importer.bind(node, conv, "bias", *bias);
  importer.give_with_bias(node, {std::nullopt, conv, input.view.with_channels(outputs)});
}

}  // namespace

int small(const FileNode& node, std::string_view what, std::int64_t value) {
  constexpr std::int64_t kMost = 1 << 16;
  if (value < -kMost || value > kMost)
    node.fail(fmt::format("found {} {}, expected at most {}", what, value, kMost));
  return static_cast<int>(value);
}

WindowAttributes window_of(const FileNode& node, const Dims& image, std::array<std::int64_t, 2> kernel,
                           bool ceil_mode) {
  const auto pair = [&](const char* name, std::array<std::int64_t, 2> otherwise) {
    const Dims listed = node.integers(name).value_or(Dims{otherwise[0], otherwise[1]});
    if (listed.size() != 2)
      node.fail(fmt::format("{} has {} extents, expected 2: only images are supported", name, listed.size()));
    if (listed[0] < 1 || listed[1] < 1)
      node.fail(fmt::format("{} is {}, expected positive extents", name, to_string(listed)));
    return std::array{small(node, name, listed[0]), small(node, name, listed[1])};
  };
  WindowAttributes window{
      pair("kernel_shape", kernel), pair("strides", {1, 1}), pair("dilations", {1, 1}), {}};
  const Dims pads = node.integers("pads").value_or(Dims{0, 0, 0, 0});
  if (pads.size() != 4) node.fail(fmt::format("pads has {} extents, expected 4", pads.size()));
  const auto pad = [&](std::size_t i) { return small(node, "pads", pads[i]); };
  window.pads = {pad(0), pad(2), pad(1), pad(3), 0};
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    if (ceil_mode) node.fail("has auto_pad and ceil_mode");
    pad_to_same(node, window, image, mode == "SAME_UPPER");
  } else if (mode == "VALID") {
    window.pads = {};
  } else if (mode != "NOTSET") {
    node.fail(fmt::format("auto_pad is '{}', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode));
  }
  return window;
}

namespace {

void import_conv(Importer& importer, const FileNode& node) {
  Value input = importer.unpadded_image(node, 0);
  const Constant weight = importer.constant(node, 1);
  if (weight.dims.size() != 4)
    node.fail(fmt::format("its weights have the shape {}, expected those of a 2-D convolution",
                          to_string(weight.dims)));
  // A convolution can pad with zeros itself, but not with other values or by negative amounts.
  if (input.pad && (input.pad->value != 0 ||
                    std::min({input.pad->top, input.pad->bottom, input.pad->left, input.pad->right}) < 0)) {
    importer.image(node, 0);
    input = importer.unpadded_image(node, 0);
  }
  const Dims extents = importer.shape(input.layer);
  WindowAttributes window = window_of(node, extents, {weight.dims[2], weight.dims[3]});
  if (window.kernel[0] != weight.dims[2] || window.kernel[1] != weight.dims[3])
    node.fail(fmt::format("kernel_shape is {}x{}, but its weights are {}", window.kernel[0], window.kernel[1],
                          to_string(weight.dims)));
  if (input.pad) {
    if (node.text("auto_pad", "NOTSET").starts_with("SAME"))
      node.fail("has auto_pad after a Pad, which is not supported");
    window.pads.top += input.pad->top, window.pads.bottom += input.pad->bottom;
    window.pads.left += input.pad->left, window.pads.right += input.pad->right;
  }
  Conv2d conv{weight.dims[0], window.kernel,   window.stride,
              {0, 0},         window.dilation, small(node, "group", node.integer("group", 1))};
  LayerId from = input.layer;
  if (window.pads.top == window.pads.bottom && window.pads.left == window.pads.right)
    conv.padding = {window.pads.top, window.pads.left};
  else
    from = importer.add(node, Pad{window.pads}, {from});
  if (conv.groups < 1 || weight.dims[1] * conv.groups != extents[1])
    node.fail(fmt::format("has weights of {} in {} groups for an image of {} channels",
                          to_string(weight.dims), conv.groups, extents[1]));
  const Constant* bias = importer.optional_constant(node, 2);
  if (bias == nullptr) bias = importer.take_bias(node, 1, 4, conv.filters);
  conv.bias = bias != nullptr;
  const LayerId layer = importer.add(node, conv, {from}, &weight);
  importer.bind(node, layer, "weight", weight);
  if (bias != nullptr) importer.bind(node, layer, "bias", *bias);
  importer.give_with_bias(node, {std::nullopt, layer, Arrangement(importer.shape(layer))});
}

void import_gemm(Importer& importer, const FileNode& node) {
  if (node.integer("transA", 0) != 0) node.fail("transA is 1, which is not supported");
  if (node.real("alpha", 1) != 1 || (node.has_input(2) && node.real("beta", 1) != 1))
    node.fail(
        fmt::format("alpha is {} and beta {}, expected 1", node.real("alpha", 1), node.real("beta", 1)));
  const Constant matrix = matrix_of(node, importer.constant(node, 1), node.integer("transB", 0) == 0);
  give_product(importer, node, matrix, importer.optional_constant(node, 2));
}

void import_matmul(Importer& importer, const FileNode& node) {
  if (!importer.is_constant(node, 1))
    node.fail(
        "multiplies two values that are computed from the images, as attention does; Convoy trains "
        "convolutional networks");
  give_product(importer, node, matrix_of(node, importer.constant(node, 1), true), nullptr);
}

}  // namespace

const Operations& product_operations() {
  static const Operations table{
      {"Conv", import_conv, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
      {"Gemm", import_gemm, {"alpha", "beta", "transA", "transB"}},
      {"MatMul", import_matmul, {}},
  };
  return table;
}

}  // namespace convoy::app::onnx_import
