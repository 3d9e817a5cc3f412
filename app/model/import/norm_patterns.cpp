// Recognises the groups of nodes that compute normalisations.
#include <algorithm>

#include "app/model/import/pattern_graph.h"

namespace convoy::app::onnx_import {
namespace {

// Returns the axis over which a ReduceMean averages. Returns nothing if it averages over several
// axes or if its output lacks the axis.
std::optional<std::int64_t> mean_axis(const PatternGraph& graph, const FileNode& mean) {
  const auto listed = mean.has_input(1) ? graph.constant(mean.inputs[1]) : std::nullopt;
  const auto axes = listed && listed->is_integer ? std::optional(listed->integers) : mean.integers("axes");
  if (!axes || axes->size() != 1 || mean.integer("keepdims", 1) == 0) return std::nullopt;
  return (*axes)[0];
}

// Returns whether the value is x - mean(x), with a mean over one axis. Sets `x` to the name of x.
bool is_centred(const PatternGraph& graph, const std::string& value, std::string& x, std::int64_t& axis) {
  const FileNode* sub = graph.binary(value, "Sub");
  const FileNode* mean = sub == nullptr ? nullptr : graph.maker(sub->inputs[1], "ReduceMean");
  if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return false;
  const auto found = mean_axis(graph, *mean);
  if (!found) return false;
  x = sub->inputs[0], axis = *found;
  return true;
}

// Returns epsilon if the value is sqrt(mean((x - mean(x))^2) + epsilon), with means over `axis`.
// Otherwise returns nothing.
std::optional<double> is_deviation(const PatternGraph& graph, const std::string& value, const std::string& x,
                                   std::int64_t axis) {
  const FileNode* root = graph.maker(value, "Sqrt");
  const FileNode* sum = root == nullptr ? nullptr : graph.binary(root->inputs[0], "Add");
  const auto epsilon = sum == nullptr ? std::nullopt : graph.with_number(*sum);
  const FileNode* mean = epsilon ? graph.maker(epsilon->value, "ReduceMean") : nullptr;
  if (mean == nullptr || mean_axis(graph, *mean) != axis) return std::nullopt;
  std::string centred;
  if (const FileNode* pow = graph.binary(mean->inputs[0], "Pow");
      pow != nullptr && graph.number(pow->inputs[1]) == 2)
    centred = pow->inputs[0];
  else if (const FileNode* mul = graph.binary(mean->inputs[0], "Mul");
           mul != nullptr && mul->inputs[0] == mul->inputs[1])
    centred = mul->inputs[0];
  std::string same;
  std::int64_t same_axis = 0;
  if (!is_centred(graph, centred, same, same_axis) || same != x || same_axis != axis) return std::nullopt;
  return epsilon->number;
}

Match channel_norm(const PatternGraph& graph, const FileNode& node) {
  if (!is_binary(node, "Add")) return std::nullopt;
  for (const std::size_t scaled : {0u, 1u}) {
    const FileNode* mul = graph.binary(node.inputs[scaled], "Mul");
    for (const std::size_t normed : {0u, 1u}) {
      const FileNode* div = mul == nullptr ? nullptr : graph.binary(mul->inputs[normed], "Div");
      std::string x;
      std::int64_t axis = 0;
      if (div == nullptr || !is_centred(graph, div->inputs[0], x, axis)) continue;
      if (const auto epsilon = is_deviation(graph, div->inputs[1], x, axis))
        return make_node("ChannelNorm", {x, mul->inputs[1 - normed], node.inputs[1 - scaled]},
                         {{"axis", axis}, {"epsilon", static_cast<float>(*epsilon)}});
    }
  }
  return std::nullopt;
}

bool all_equal(const Constant& constant, double number) {
  for (std::int64_t i = 0; i < constant.size(); ++i)
    if (constant.at(i) != number) return false;
  return !constant.is_integer;
}

// Recognises PyTorch's group norm: an instance norm of [N, groups, -1] that is reshaped to the
// image, multiplied by a weight and added to a bias.
Match group_norm(const PatternGraph& graph, const FileNode& node) {
  if (!is_binary(node, "Add")) return std::nullopt;
  for (const std::size_t scaled : {0u, 1u}) {
    const FileNode* mul = graph.binary(node.inputs[scaled], "Mul");
    for (const std::size_t normed : {0u, 1u}) {
      const FileNode* back = mul == nullptr ? nullptr : graph.maker(mul->inputs[normed], "Reshape");
      const FileNode* norm =
          back == nullptr ? nullptr : graph.maker(back->inputs[0], "InstanceNormalization");
      const FileNode* groups =
          norm == nullptr || norm->inputs.size() != 3 ? nullptr : graph.maker(norm->inputs[0], "Reshape");
      if (groups == nullptr || groups->inputs.size() != 2) continue;
      const auto scale = graph.constant(norm->inputs[1]), shift = graph.constant(norm->inputs[2]),
                 target = graph.constant(groups->inputs[1]);
      if (!scale || !shift || !target || !all_equal(*scale, 1) || !all_equal(*shift, 0)) continue;
      if (!target->is_integer || target->size() != 3 || target->integers[1] != scale->size()) continue;
      return make_node(
          "GroupNorm", {groups->inputs[0], mul->inputs[1 - normed], node.inputs[1 - scaled]},
          {{"num_groups", scale->size()}, {"epsilon", static_cast<float>(norm->real("epsilon", 1e-5))}});
    }
  }
  return std::nullopt;
}

// Goes back from a value through the first inputs of nodes to a node of type `op`. Returns this
// node, or null if a node on the way has a type that is not in `past`. A space precedes and
// follows each type in `past`.
const FileNode* first_before(const PatternGraph& graph, const std::string& value, std::string_view op,
                             std::string_view past) {
  for (const FileNode* node = graph.made_by(value); node != nullptr; node = graph.made_by(node->inputs[0])) {
    if (node->inputs.empty() || !node->domain.empty()) return nullptr;
    if (node->op == op) return node;
    if (past.find(" " + node->op + " ") == std::string_view::npos) return nullptr;
  }
  return nullptr;
}

// Returns whether the Pads before a value [N, 1, C, H, W] pad C by `amount` on both sides, and
// nothing else. PyTorch may compute the amounts in other nodes. These are not evaluated here, so
// such amounts are assumed to be right.
bool pads_both_sides(const PatternGraph& graph, const std::string& value, std::int64_t amount) {
  constexpr std::int64_t kAxes = 5, kChannels = 2;
  std::vector<std::int64_t> sum(2 * kAxes);
  bool known = true;
  const FileNode* pad = nullptr;
  for (const std::string* from = &value;
       (pad = first_before(graph, *from, "Pad", " Reshape Unsqueeze ")) != nullptr; from = &pad->inputs[0]) {
    const auto amounts = pad->inputs.size() > 1 ? graph.constant(pad->inputs[1]) : std::nullopt;
    known = known && amounts && amounts->size() == std::ssize(sum);
    for (std::int64_t i = 0; known && i < std::ssize(sum); ++i)
      sum[static_cast<std::size_t>(i)] += static_cast<std::int64_t>(amounts->at(i));
  }
  for (std::int64_t i = 0; known && i < std::ssize(sum); ++i)
    if (sum[static_cast<std::size_t>(i)] != (i % kAxes == kChannels ? amount : 0)) return false;
  return true;
}

// Recognises x / (k + alpha mean(x^2))^beta as PyTorch exports LocalResponseNorm. The mean over
// channels is an average pool over the depth of [N, 1, C, H, W]. After the pool there may be an
// If that tests its shape.
Match local_response_norm(const PatternGraph& graph, const FileNode& node) {
  const FileNode* power = is_binary(node, "Div") ? graph.binary(node.inputs[1], "Pow") : nullptr;
  const FileNode* sum = power == nullptr ? nullptr : graph.binary(power->inputs[0], "Add");
  const auto k = sum == nullptr ? std::nullopt : graph.with_number(*sum);
  const FileNode* scaled = k ? graph.binary(k->value, "Mul") : nullptr;
  const auto alpha = scaled == nullptr ? std::nullopt : graph.with_number(*scaled);
  const auto beta = alpha ? graph.number(power->inputs[1]) : std::nullopt;
  const FileNode* pool =
      beta ? first_before(graph, alpha->value, "AveragePool", " Reshape If Equal Gather Shape Squeeze ")
           : nullptr;
  const auto kernel = pool == nullptr ? std::nullopt : pool->integers("kernel_shape");
  if (!kernel || kernel->size() != 3 || (*kernel)[0] % 2 == 0 || (*kernel)[1] != 1 || (*kernel)[2] != 1)
    return std::nullopt;
  // The mean must be over a symmetric window around every channel, with padding counted as zeros.
  // So the stride must be 1, and a Pad or the pool must pad half a window on both sides.
  const auto all_are = [](const auto& values, std::int64_t one) {
    return !values || std::ranges::all_of(*values, [&](std::int64_t value) { return value == one; });
  };
  const std::int64_t half = (*kernel)[0] / 2;
  const auto in_pool = pool->integers("pads");
  if (!all_are(pool->integers("strides"), 1)) return std::nullopt;
  if (!all_are(in_pool, 0)) {
    if (*in_pool != std::vector<std::int64_t>{half, 0, 0, half, 0, 0}) return std::nullopt;
    if (pool->integer("count_include_pad", 0) == 0) return std::nullopt;
  } else if (!pads_both_sides(graph, pool->inputs[0], half)) {
    return std::nullopt;
  }
  const FileNode* square = first_before(graph, pool->inputs[0], "Mul", " Pad Reshape Unsqueeze ");
  if (square == nullptr || square->inputs != std::vector{node.inputs[0], node.inputs[0]}) return std::nullopt;
  return make_node("LRN", {node.inputs[0]},
                   {{"size", (*kernel)[0]},
                    {"alpha", static_cast<float>(alpha->number)},
                    {"beta", static_cast<float>(*beta)},
                    {"bias", static_cast<float>(k->number)}});
}

}  // namespace

Match match_norm(const PatternGraph& graph, const FileNode& node) {
  for (const auto match : {channel_norm, group_norm, local_response_norm})
    if (auto found = match(graph, node)) return found;
  return std::nullopt;
}

}  // namespace convoy::app::onnx_import
