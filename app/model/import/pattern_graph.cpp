#include "app/model/import/pattern_graph.h"

#include <cmath>

#include "app/model/import/constants.h"

namespace convoy::app::onnx_import {
namespace {

constexpr std::size_t kMostFactors = 6;
// The deepest nesting of products that is searched. It bounds the recursion.
constexpr int kDeepest = 16;

}  // namespace

bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

bool is_binary(const FileNode& node, std::string_view op) {
  return node.op == op && node.domain.empty() && node.inputs.size() == 2;
}

FileNode make_node(std::string op, std::vector<std::string> inputs,
                   std::map<std::string, Attribute> attributes) {
  return {{}, std::move(op), {}, std::move(inputs), {}, std::move(attributes), 0};
}

PatternGraph::PatternGraph(const FileGraph& graph) : graph_(graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& output : graph.nodes[i].outputs) maker_[output] = i;
}

const FileNode* PatternGraph::made_by(const std::string& value) const {
  const auto found = maker_.find(value);
  return found == maker_.end() ? nullptr : &graph_.nodes[found->second];
}

const FileNode* PatternGraph::maker(const std::string& value, std::string_view op) const {
  const FileNode* node = made_by(value);
  for (int casts = 0; node != nullptr && node->op == "Cast" && casts < 4; ++casts)
    node = made_by(node->inputs.at(0));
  if (node == nullptr || node->op != op || !node->domain.empty()) return nullptr;
  return !node->inputs.empty() || op == "Constant" ? node : nullptr;
}

const FileNode* PatternGraph::binary(const std::string& value, std::string_view op) const {
  const FileNode* node = maker(value, op);
  return node != nullptr && node->inputs.size() == 2 ? node : nullptr;
}

std::optional<Constant> PatternGraph::constant(const std::string& value) const {
  if (const auto found = graph_.initialisers.find(value); found != graph_.initialisers.end())
    return found->second;
  const FileNode* made = maker(value, "Constant");
  return made == nullptr ? std::nullopt : evaluate(*made, {});
}

std::optional<double> PatternGraph::number(const std::string& value) const {
  const auto found = constant(value);
  return found && found->size() == 1 ? std::optional(found->at(0)) : std::nullopt;
}

std::optional<PatternGraph::WithNumber> PatternGraph::with_number(const FileNode& node) const {
  if (const auto b = number(node.inputs[1])) return WithNumber{node.inputs[0], *b};
  if (node.op == "Div" || node.op == "Sub" || node.op == "Pow") return std::nullopt;
  if (const auto a = number(node.inputs[0])) return WithNumber{node.inputs[1], *a};
  return std::nullopt;
}

int PatternGraph::small_power(const std::string& value) const {
  const FileNode* pow = binary(value, "Pow");
  const auto exponent = pow == nullptr ? std::nullopt : number(pow->inputs[1]);
  for (const int power : {2, 3})
    if (exponent == power) return power;
  return 0;
}

bool PatternGraph::is_sum(const std::string& value, double number, std::string& other) const {
  const FileNode* add = binary(value, "Add");
  const auto found = add == nullptr ? std::nullopt : with_number(*add);
  if (!found || !near(found->number, number)) return false;
  other = found->value;
  return true;
}

void PatternGraph::collect(const std::string& value, Product& product, int depth) const {
  if (product.values.size() > kMostFactors || depth > kDeepest) {
    product.number = NAN;
  } else if (value == product.whole) {
    product.values.push_back(value);
  } else if (const auto found = number(value)) {
    product.number *= *found;
  } else if (const FileNode* mul = binary(value, "Mul"); mul != nullptr) {
    collect(mul->inputs[0], product, depth + 1);
    collect(mul->inputs[1], product, depth + 1);
  } else if (const FileNode* div = binary(value, "Div"); div != nullptr && number(div->inputs[1])) {
    product.number /= *number(div->inputs[1]);
    collect(div->inputs[0], product, depth + 1);
  } else if (const int power = small_power(value); power > 0) {
    for (int i = 0; i < power; ++i) collect(binary(value, "Pow")->inputs[0], product, depth + 1);
  } else {
    product.values.push_back(value);
  }
}

std::optional<PatternGraph::Product> PatternGraph::product_of(const FileNode& node,
                                                              const std::string& whole) const {
  Product product{whole};
  if (is_binary(node, "Mul")) {
    for (const std::string& input : node.inputs) collect(input, product);
  } else if (const auto divisor = is_binary(node, "Div") ? number(node.inputs[1]) : std::nullopt) {
    collect(node.inputs[0], product);
    product.number /= *divisor;
  } else {
    return std::nullopt;
  }
  return product;
}

}  // namespace convoy::app::onnx_import
