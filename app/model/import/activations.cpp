// Imports ONNX's elementwise functions, dropout and softmax, and recognises the groups of nodes
// that compute activations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "app/model/import/operations.h"
#include "app/model/import/pattern_graph.h"

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

using Product = PatternGraph::Product;

Match silu(const PatternGraph& graph, const FileNode& node) {
  if (!is_binary(node, "Mul")) return std::nullopt;
  for (const std::size_t gate : {0u, 1u}) {
    const FileNode* sigmoid = graph.maker(node.inputs[gate], "Sigmoid");
    if (sigmoid != nullptr && sigmoid->inputs[0] == node.inputs[1 - gate])
      return make_node("Silu", {sigmoid->inputs[0]});
  }
  return std::nullopt;
}

// Returns a bound of a Clip, or NaN if it has none.
double bound(const PatternGraph& graph, const FileNode& clip, std::size_t input, const char* attribute) {
  const auto given = clip.has_input(input) ? graph.number(clip.inputs[input]) : std::nullopt;
  return given ? *given : clip.real(attribute, NAN);
}

// Removes a ReLU before a Clip with the minimum 0, because the Clip replaces negative values by 0,
// too.
Match clip_of_relu(const PatternGraph& graph, const FileNode& node) {
  const FileNode* relu = node.op == "Clip" && node.domain.empty() && !node.inputs.empty()
                             ? graph.maker(node.inputs[0], "Relu")
                             : nullptr;
  if (relu == nullptr || bound(graph, node, 1, "min") != 0) return std::nullopt;
  FileNode clip = node;
  clip.inputs[0] = relu->inputs[0];
  return clip;
}

// Returns whether the value is min(max(x + 3, 0), 6). Sets `x` to the name of the value x.
bool is_shifted_clip(const PatternGraph& graph, const std::string& value, std::string& x) {
  const FileNode* clip = graph.maker(value, "Clip");
  if (clip == nullptr) return false;
  return bound(graph, *clip, 1, "min") == 0 && bound(graph, *clip, 2, "max") == 6 &&
         graph.is_sum(clip->inputs[0], 3, x);
}

Match hard_sigmoid(const PatternGraph& graph, const FileNode& node) {
  std::string x;
  if (!is_binary(node, "Div") && !is_binary(node, "Mul")) return std::nullopt;
  const auto found = graph.with_number(node);
  const double sixth = node.op == "Div" ? 6 : 1.0 / 6;
  if (!found || !near(found->number, sixth) || !is_shifted_clip(graph, found->value, x)) return std::nullopt;
  return make_node("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
}

Match hard_swish(const PatternGraph& graph, const FileNode& node) {
  std::string x;
  if (is_binary(node, "Mul"))
    for (const std::size_t gate : {0u, 1u}) {
      const FileNode* sigmoid = graph.maker(node.inputs[gate], "HardSigmoid");
      if (sigmoid != nullptr && sigmoid->inputs[0] == node.inputs[1 - gate] &&
          near(sigmoid->real("alpha", 0.2), 1.0 / 6) && near(sigmoid->real("beta", 0.5), 0.5))
        return make_node("HardSwish", {sigmoid->inputs[0]});
    }
  const auto product = graph.product_of(node);
  if (!product || !near(product->number, 1.0 / 6) || product->values.size() != 2) return std::nullopt;
  for (const std::size_t gate : {0u, 1u})
    if (is_shifted_clip(graph, product->values[gate], x) && x == product->values[1 - gate])
      return make_node("HardSwish", {x});
  return std::nullopt;
}

// Returns the factors of a product, and those of its factors, a few levels deep.
std::vector<std::string> factors_of(const PatternGraph& graph, const FileNode& node, int depth) {
  constexpr int kLevels = 3;
  std::vector<std::string> factors;
  for (const std::string& input : node.inputs) {
    const FileNode* product = graph.binary(input, "Mul");
    if (product == nullptr) product = graph.binary(input, "Div");
    factors.push_back(input);
    if (product == nullptr || depth == kLevels) continue;
    for (std::string& factor : factors_of(graph, *product, depth + 1)) factors.push_back(std::move(factor));
  }
  return factors;
}

// Appends the inputs of the nodes that compute `value`, up to three nodes back.
void add_values_before(const PatternGraph& graph, const std::string& value, std::vector<std::string>& values,
                       int depth) {
  constexpr int kNodesBack = 3;
  const FileNode* made = graph.made_by(value);
  if (made == nullptr || depth == kNodesBack) return;
  for (const std::string& input : made->inputs) {
    if (graph.number(input)) continue;
    if (std::ranges::find(values, input) == values.end()) values.push_back(input);
    add_values_before(graph, input, values, depth + 1);
  }
}

// Returns the values from which an Erf or a Tanh among the factors of `node` is computed. If the
// node is a GELU, one of them is its input.
std::vector<std::string> possible_gelu_inputs(const PatternGraph& graph, const FileNode& node) {
  std::vector<std::string> values;
  std::string inner;
  for (const std::string& factor : factors_of(graph, node, 0)) {
    if (!graph.is_sum(factor, 1, inner)) continue;
    const FileNode* curve = graph.maker(inner, "Erf");
    if (curve == nullptr) curve = graph.maker(inner, "Tanh");
    if (curve != nullptr) add_values_before(graph, curve->inputs[0], values, 0);
  }
  return values;
}

bool all_are(const std::vector<std::string>& values, const std::string& x, std::size_t count) {
  return values.size() == count && std::ranges::count(values, x) == static_cast<std::ptrdiff_t>(count);
}

bool is_scaled(const PatternGraph& graph, const std::string& value, const std::string& x, double number) {
  Product product{x};
  graph.collect(value, product);
  return near(product.number, number) && all_are(product.values, x, 1);
}

// Returns whether the value is sqrt(2 / pi) (x + 0.044715 x^3), also in the form sqrt(2 / pi) x
// (1 + 0.044715 x^2).
bool is_cubic(const PatternGraph& graph, const std::string& value, const std::string& x) {
  Product outer{x};
  graph.collect(value, outer);
  if (!near(outer.number, std::sqrt(2 / std::numbers::pi)) || outer.values.empty()) return false;
  const bool outside = outer.values.size() == 2;
  for (std::size_t i = 0; i < outer.values.size(); ++i) {
    const FileNode* add = graph.binary(outer.values[i], "Add");
    if (add == nullptr || (outside && outer.values[1 - i] != x)) continue;
    for (const std::size_t which : {0u, 1u}) {
      Product cube{x};
      graph.collect(add->inputs[which], cube);
      const std::string& rest = add->inputs[1 - which];
      const bool fits = outside ? graph.number(rest) == 1 : rest == x;
      if (fits && near(cube.number, 0.044715) && all_are(cube.values, x, outside ? 2 : 3)) return true;
    }
  }
  return false;
}

// Recognises x (1 + erf(x / sqrt(2))) / 2 and x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
// The factors may be in any order.
Match gelu(const PatternGraph& graph, const FileNode& node) {
  if (!is_binary(node, "Mul") && !is_binary(node, "Div")) return std::nullopt;
  for (const std::string& x : possible_gelu_inputs(graph, node)) {
    const auto product = graph.product_of(node, x);
    if (!product || !near(product->number, 0.5) || product->values.size() != 2) continue;
    for (const std::size_t gate : {0u, 1u}) {
      std::string inner;
      if (product->values[1 - gate] != x || !graph.is_sum(product->values[gate], 1, inner)) continue;
      if (const FileNode* erf = graph.maker(inner, "Erf");
          erf != nullptr && is_scaled(graph, erf->inputs[0], x, std::numbers::sqrt2 / 2))
        return make_node("Gelu", {x}, {{"approximate", std::string("none")}});
      if (const FileNode* tanh = graph.maker(inner, "Tanh");
          tanh != nullptr && is_cubic(graph, tanh->inputs[0], x))
        return make_node("Gelu", {x}, {{"approximate", std::string("tanh")}});
    }
  }
  return std::nullopt;
}

}  // namespace

const Operations& activation_operations() {
  static const Operations table{
      {"Cast", import_cast, {"to", "saturate"}},
      {"Clip", import_clip, {"max", "min"}},
      {"Dropout", import_dropout, {"ratio", "seed"}},
      {"Gelu", import_gelu, {"approximate"}},
      {"HardSigmoid", import_hard_sigmoid, {"alpha", "beta"}},
      {"HardSwish", import_activation, {}},
      {"Identity", import_identity, {}},
      {"LeakyRelu", import_leaky_relu, {"alpha"}},
      {"LogSoftmax", import_softmax, {"axis"}},
      {"PRelu", import_prelu, {}},
      {"Relu", import_relu, {}},
      {"Sigmoid", import_activation, {}},
      {"Silu", import_activation, {}},
      {"Softmax", import_softmax, {"axis"}},
      {"Swish", import_activation, {"alpha"}},
  };
  return table;
}

Match match_activation(const PatternGraph& graph, const FileNode& node) {
  for (const auto match : {clip_of_relu, silu, hard_sigmoid, hard_swish, gelu})
    if (auto found = match(graph, node)) return found;
  return std::nullopt;
}

}  // namespace convoy::app::onnx_import
