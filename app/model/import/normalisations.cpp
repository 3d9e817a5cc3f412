// Imports ONNX's normalisation operations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

// Returns the decimal number that a float in a file stands for: 0.9, and not 0.8999999762.
double as_written(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

bool is_one_number(const Constant& constant) {
  if (constant.is_integer || constant.size() == 0 || !std::isfinite(constant.at(0))) return false;
  return std::ranges::all_of(*constant.reals, [&](float value) { return value == constant.reals->front(); });
}

double without_rounding(double value) { return std::round(value * 1e9) / 1e9; }

struct Range {
  double least, most;
  const char* text;
};
constexpr double kMostReal = std::numeric_limits<float>::max();
constexpr Range kFinite{-kMostReal, kMostReal, "a finite number"};
constexpr Range kNotNegative{0, kMostReal, "a finite number of at least 0"};
constexpr Range kShare{0, 1, "a number from 0 to 1"};

// Returns a real attribute. Fails unless it is in `range`; NaN never is.
double real_in(const Range& range, const FileNode& node, const char* name, double otherwise) {
  const double value = node.real(name, otherwise);
  if (!(value >= range.least && value <= range.most))
    node.fail(fmt::format("{} is {}, expected {}", name, value, range.text));
  return as_written(value);
}

float epsilon_of(const FileNode& node) {
  return static_cast<float>(real_in(kNotNegative, node, "epsilon", 1e-5));
}

// Gives a norm its weight or bias, which is input `index`. A constant of the graph that is one
// number for all channels is not trained: PyTorch writes it for a norm with affine=False.
void bind_or_keep(Importer& importer, const FileNode& node, LayerId layer, const char* key,
                  std::size_t index) {
  const Constant& values = importer.constant(node, index);
  const bool fits = values.size() == 1 || values.size() == importer.shape(layer)[1];
  if (fits && values.name.empty() && is_one_number(values)) return importer.keep(layer, key, values.at(0));
  importer.bind(node, layer, key, values);
}

void bind_affine(Importer& importer, const FileNode& node, LayerId layer) {
  bind_or_keep(importer, node, layer, "weight", 1);
  bind_or_keep(importer, node, layer, "bias", 2);
}

// Adds a layer norm over `axis` of the node's input, which must be the axis of the channels.
void give_layer_norm(Importer& importer, const FileNode& node, std::int64_t axis) {
  const Value input = importer.activation(node, 0);
  const int place = input.view.place_of(1);
  if (place < 0 || (axis < 0 ? axis + input.view.rank() : axis) != place)
    node.fail(
        fmt::format("normalises axis {} of {}, expected the channels alone", axis, to_string(input.dims())));
  const LayerNorm norm{epsilon_of(node)};
  const LayerId layer = importer.give_elementwise(node, norm, importer.optional_constant(node, 1));
  // PyTorch writes no inputs for elementwise_affine=False, and no third one for bias=False.
  if (node.has_input(1))
    bind_or_keep(importer, node, layer, "weight", 1);
  else
    importer.keep(layer, "weight", 1);
  if (node.has_input(2))
    bind_or_keep(importer, node, layer, "bias", 2);
  else
    importer.keep(layer, "bias", 0);
}

void give_group_norm(Importer& importer, const FileNode& node, std::int64_t groups) {
  const LayerId input = importer.image(node, 0);
  const GroupNorm norm{small(node, "num_groups", groups), epsilon_of(node)};
  const LayerId layer = importer.add(node, norm, {input}, &importer.constant(node, 1));
  bind_affine(importer, node, layer);
  importer.give(node, layer);
}

void import_batch_norm(Importer& importer, const FileNode& node) {
  const LayerId input = importer.image(node, 0);
  for (std::size_t output = 1; output < node.outputs.size(); ++output)
    if (!node.outputs[output].empty() && importer.only_reader(node.outputs[output]) != nullptr)
      node.fail("its statistics are read by another node, which is not supported");
  BatchNorm norm;
  norm.epsilon = real_in(kNotNegative, node, "epsilon", 1e-5);
  // In ONNX, momentum is the weight of the old statistics. Here it is the weight of the statistics
  // of the batch.
  norm.momentum = without_rounding(1 - real_in(kShare, node, "momentum", 0.9));
  const LayerId layer = importer.add(node, norm, {input}, &importer.constant(node, 1));
  bind_affine(importer, node, layer);
  importer.bind(node, layer, "running_mean", importer.constant(node, 3));
  importer.bind(node, layer, "running_var", importer.constant(node, 4));
  importer.give(node, layer);
}

void import_layer_norm(Importer& importer, const FileNode& node) {
  const Value input = importer.activation(node, 0);
  const std::int64_t axis = node.integer("axis", -1);
  if (axis != -1 && axis != input.view.rank() - 1)
    node.fail(fmt::format("normalises from axis {} of {} on, expected the channels alone", axis,
                          to_string(input.dims())));
  give_layer_norm(importer, node, axis);
}

void import_channel_norm(Importer& importer, const FileNode& node) {
  give_layer_norm(importer, node, node.integer("axis", -1));
}

void import_group_norm(Importer& importer, const FileNode& node) {
  give_group_norm(importer, node, node.integer("num_groups", 1));
}

void import_instance_norm(Importer& importer, const FileNode& node) {
  give_group_norm(importer, node, importer.shape(importer.image(node, 0))[1]);
}

void import_lrn(Importer& importer, const FileNode& node) {
  LocalResponseNorm norm;
  norm.size = small(node, "size", node.integer("size", 0));
  norm.alpha = static_cast<float>(real_in(kFinite, node, "alpha", 1e-4));
  norm.beta = static_cast<float>(real_in(kFinite, node, "beta", 0.75));
  norm.k = static_cast<float>(real_in(kFinite, node, "bias", 1));
  importer.give(node, importer.add(node, norm, {importer.image(node, 0)}));
}

}  // namespace

const Operations& norm_operations() {
  static const Operations table{
      {"BatchNormalization", import_batch_norm, {"epsilon", "momentum", "training_mode"}},
      {"ChannelNorm", import_channel_norm, {"axis", "epsilon"}},
      {"GroupNorm", import_group_norm, {"epsilon", "num_groups"}},
      {"GroupNormalization", import_group_norm, {"epsilon", "num_groups", "stash_type"}},
      {"InstanceNormalization", import_instance_norm, {"epsilon"}},
      {"LRN", import_lrn, {"alpha", "beta", "bias", "size"}},
      {"LayerNormalization", import_layer_norm, {"axis", "epsilon", "stash_type"}},
  };
  return table;
}

}  // namespace convoy::app::onnx_import
