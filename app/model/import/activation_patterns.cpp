// Recognises the groups of nodes that compute activations.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "app/model/import/pattern_graph.h"

namespace convoy::app::onnx_import {
namespace {

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

Match match_activation(const PatternGraph& graph, const FileNode& node) {
  for (const auto match : {clip_of_relu, silu, hard_sigmoid, hard_swish, gelu})
    if (auto found = match(graph, node)) return found;
  return std::nullopt;
}

}  // namespace convoy::app::onnx_import
