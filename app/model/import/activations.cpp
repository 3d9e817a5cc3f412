// Imports ONNX's elementwise functions, dropout and softmax.
#include <fmt/format.h>

#include <limits>

#include "app/model/import/operations.h"

namespace convoy::app::onnx_import {
namespace {

using kernels::ActivationKind;

void give_activation(Importer& importer, const FileNode& node, const kernels::ActivationProblem& function) {
  importer.give_elementwise(node, Activation{function});
}

double number_of(const FileNode& node, const char* what, const Constant& constant) {
  if (constant.size() != 1)
    node.fail(fmt::format("its {} has the shape {}, expected one number", what, to_string(constant.dims)));
  return constant.at(0);
}

}  // namespace

void import_relu(Importer& importer, const FileNode& node) { importer.give_elementwise(node, Relu{}); }

void import_clip(Importer& importer, const FileNode& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto bound = [&](std::size_t input, const char* name, double otherwise) {
    const Constant* given = importer.optional_constant(node, input);
    const double value = given != nullptr ? number_of(node, name, *given) : node.real(name, otherwise);
    return static_cast<float>(value);
  };
  kernels::ActivationProblem clip{.kind = ActivationKind::clip};
  clip.min = bound(1, "min", -kInfinity), clip.max = bound(2, "max", kInfinity);
  if (clip.min == 0 && clip.max >= std::numeric_limits<float>::max()) return import_relu(importer, node);
  give_activation(importer, node, clip);
}

void import_leaky_relu(Importer& importer, const FileNode& node) {
  give_activation(
      importer, node,
      {.kind = ActivationKind::leaky_relu, .slope = static_cast<float>(node.real("alpha", 0.01))});
}

void import_prelu(Importer& importer, const FileNode& node) {
  const Constant slope = importer.constant(node, 1);
  const Value input = importer.activation(node, 0);
  const bool per_channel = slope.size() > 1;
  if (per_channel && !is_per_channel(slope, input.dims(), input.view.place_of(1)))
    node.fail(fmt::format("its slopes have the shape {}, expected one or one for each channel of {}",
                          to_string(slope.dims), to_string(input.dims())));
  const LayerId layer = importer.give_elementwise(node, Prelu{per_channel}, &slope);
  importer.bind(node, layer, "weight", slope);
}

void import_activation(Importer& importer, const FileNode& node) {
  // ONNX's Swish is x * sigmoid(alpha * x).
  if (node.real("alpha", 1) != 1) node.fail("alpha is not 1, which is not supported");
  const ActivationKind kind = node.op == "Sigmoid"     ? ActivationKind::sigmoid
                              : node.op == "HardSwish" ? ActivationKind::hard_swish
                                                       : ActivationKind::silu;
  give_activation(importer, node, {.kind = kind});
}

void import_hard_sigmoid(Importer& importer, const FileNode& node) {
  give_activation(importer, node,
                  {.kind = ActivationKind::hard_sigmoid,
                   .slope = static_cast<float>(node.real("alpha", 0.2)),
                   .offset = static_cast<float>(node.real("beta", 0.5))});
}

void import_gelu(Importer& importer, const FileNode& node) {
  const std::string form = node.text("approximate", "none");
  if (form != "none" && form != "tanh")
    node.fail(fmt::format("approximate is '{}', expected none or tanh", form));
  give_activation(importer, node,
                  {.kind = form == "none" ? ActivationKind::gelu : ActivationKind::gelu_tanh});
}

void import_dropout(Importer& importer, const FileNode& node) {
  const Constant* ratio = importer.optional_constant(node, 1);
  const double rate = ratio != nullptr ? number_of(node, "ratio", *ratio) : node.real("ratio", 0.5);
  if (rate == 0) return importer.give(node, importer.activation(node, 0));
  importer.give_elementwise(node, Dropout{static_cast<float>(rate)});
}

void import_identity(Importer& importer, const FileNode& node) {
  importer.give(node, importer.activation(node, 0));
}

void import_cast(Importer& importer, const FileNode& node) {
  // These are values of ONNX's TensorProto::DataType.
  constexpr std::int64_t kFloat = 1, kHalf = 10, kDouble = 11, kBfloat = 16;
  const std::int64_t to = node.integer("to", kFloat);
  if (to != kFloat && to != kHalf && to != kDouble && to != kBfloat)
    node.fail(fmt::format("makes values of type {}, expected real numbers", to));
  import_identity(importer, node);
}

void import_softmax(Importer& importer, const FileNode& node) {
  const Value input = importer.activation(node, 0);
  std::int64_t axis = node.integer("axis", importer.graph().opset < 13 ? 1 : -1);
  if (axis < 0) axis += input.view.rank();
  if (axis != input.view.place_of(1))
    node.fail(fmt::format("is over axis {} of {}, expected the channels", axis, to_string(input.dims())));
  if (importer.is_last(node)) {
    importer.note(fmt::format("its last {} is left out: training and evaluation take logits", node.op));
    return importer.give(node, input);
  }
  if (node.op != "Softmax") node.fail("is inside the network; expected it at the end, where the loss has it");
  importer.give_elementwise(node, Softmax{});
}

}  // namespace convoy::app::onnx_import
