#include "app/model/import/patterns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "app/model/import/constants.h"

namespace convoy::app::onnx_import {
namespace {

constexpr std::size_t kMostFactors = 6;
// The deepest nesting of products that is searched. It bounds the recursion.
constexpr int kDeepest = 16;

bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

class Recogniser {
 public:
  explicit Recogniser(FileGraph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (const std::string& output : graph.nodes[i].outputs) maker_[output] = i;
  }

  void run() {
    for (FileNode& node : graph_.nodes)
      for (const auto match : {&Recogniser::clip_of_relu, &Recogniser::silu, &Recogniser::hard_sigmoid,
                               &Recogniser::hard_swish, &Recogniser::gelu, &Recogniser::channel_norm,
                               &Recogniser::group_norm, &Recogniser::local_response_norm})
        if (const auto found = (this->*match)(node)) {
          FileNode whole = *found;
          whole.name = node.name, whole.outputs = node.outputs, whole.index = node.index;
          node = std::move(whole);
          break;
        }
  }

 private:
  using Match = std::optional<FileNode>;

  static FileNode make(std::string op, std::vector<std::string> inputs,
                       std::map<std::string, Attribute> attributes = {}) {
    return {{}, std::move(op), {}, std::move(inputs), {}, std::move(attributes), 0};
  }

  // Returns the node that computes a value, or null if the node is not of the type `op`. Skips up
  // to four Cast nodes.
  const FileNode* maker(const std::string& value, std::string_view op) const {
    auto found = maker_.find(value);
    for (int casts = 0; found != maker_.end() && graph_.nodes[found->second].op == "Cast" && casts < 4;
         ++casts)
      found = maker_.find(graph_.nodes[found->second].inputs.at(0));
    if (found == maker_.end()) return nullptr;
    const FileNode& node = graph_.nodes[found->second];
    return node.op == op && node.domain.empty() && (!node.inputs.empty() || op == "Constant") ? &node
                                                                                              : nullptr;
  }
  const FileNode* binary(const std::string& value, std::string_view op) const {
    const FileNode* node = maker(value, op);
    return node != nullptr && node->inputs.size() == 2 ? node : nullptr;
  }
  static bool is_binary(const FileNode& node, std::string_view op) {
    return node.op == op && node.domain.empty() && node.inputs.size() == 2;
  }

  // Returns a constant of the file, or nothing if the value is not a stored constant.
  std::optional<Constant> constant(const std::string& value) const {
    if (const auto found = graph_.initialisers.find(value); found != graph_.initialisers.end())
      return found->second;
    const FileNode* made = maker(value, "Constant");
    return made == nullptr ? std::nullopt : evaluate(*made, {});
  }
  std::optional<double> number(const std::string& value) const {
    const auto found = constant(value);
    return found && found->size() == 1 ? std::optional(found->at(0)) : std::nullopt;
  }

  // The two inputs of a node: a value and a constant number.
  struct WithNumber {
    std::string value;
    double number;
  };
  std::optional<WithNumber> with_number(const FileNode& node) const {
    if (const auto b = number(node.inputs[1])) return WithNumber{node.inputs[0], *b};
    if (node.op == "Div" || node.op == "Sub" || node.op == "Pow") return std::nullopt;
    if (const auto a = number(node.inputs[0])) return WithNumber{node.inputs[1], *a};
    return std::nullopt;
  }
  bool is_sum(const std::string& value, double number, std::string& other) const {
    const FileNode* add = binary(value, "Add");
    const auto found = add == nullptr ? std::nullopt : with_number(*add);
    if (!found || !near(found->number, number)) return false;
    other = found->value;
    return true;
  }

  // The factors of a product. All constant numbers are multiplied into `number`. A factor named
  // `whole` is not divided, even if it is a product itself.
  struct Product {
    std::string whole;
    double number = 1;
    std::vector<std::string> values;
  };
  void collect(const std::string& value, Product& product, int depth = 0) const {
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
    } else if (const FileNode* pow = binary(value, "Pow"); pow != nullptr && number(pow->inputs[1]) == 3) {
      for (int i = 0; i < 3; ++i) collect(pow->inputs[0], product, depth + 1);
    } else {
      product.values.push_back(value);
    }
  }
  // Returns the factors of a node, or nothing if the node is neither a product nor a division by a
  // number.
  std::optional<Product> product_of(const FileNode& node, const std::string& whole = {}) const {
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
  static bool all_are(const std::vector<std::string>& values, const std::string& x, std::size_t count) {
    return values.size() == count && std::ranges::count(values, x) == static_cast<std::ptrdiff_t>(count);
  }

  Match silu(const FileNode& node) const {
    if (!is_binary(node, "Mul")) return std::nullopt;
    for (const std::size_t gate : {0u, 1u}) {
      const FileNode* sigmoid = maker(node.inputs[gate], "Sigmoid");
      if (sigmoid != nullptr && sigmoid->inputs[0] == node.inputs[1 - gate])
        return make("Silu", {sigmoid->inputs[0]});
    }
    return std::nullopt;
  }

  // Removes a ReLU before a Clip with the minimum 0, because it changes nothing.
  Match clip_of_relu(const FileNode& node) const {
    const FileNode* relu = node.op == "Clip" && node.domain.empty() && !node.inputs.empty()
                               ? maker(node.inputs[0], "Relu")
                               : nullptr;
    if (relu == nullptr || bound(node, 1, "min") != 0) return std::nullopt;
    FileNode clip = node;
    clip.inputs[0] = relu->inputs[0];
    return clip;
  }
  // Returns a bound of a Clip, or NaN if it has none.
  double bound(const FileNode& clip, std::size_t input, const char* attribute) const {
    const auto given = clip.has_input(input) ? number(clip.inputs[input]) : std::nullopt;
    return given ? *given : clip.real(attribute, NAN);
  }
  // Returns whether the value is min(max(x + 3, 0), 6). Sets `x` to the name of the value x.
  bool is_shifted_clip(const std::string& value, std::string& x) const {
    const FileNode* clip = maker(value, "Clip");
    if (clip == nullptr) return false;
    return bound(*clip, 1, "min") == 0 && bound(*clip, 2, "max") == 6 && is_sum(clip->inputs[0], 3, x);
  }
  Match hard_sigmoid(const FileNode& node) const {
    std::string x;
    if (!is_binary(node, "Div") && !is_binary(node, "Mul")) return std::nullopt;
    const auto found = with_number(node);
    const double sixth = node.op == "Div" ? 6 : 1.0 / 6;
    if (!found || !near(found->number, sixth) || !is_shifted_clip(found->value, x)) return std::nullopt;
    return make("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
  }

  Match hard_swish(const FileNode& node) const {
    std::string x;
    if (is_binary(node, "Mul"))
      for (const std::size_t gate : {0u, 1u}) {
        const FileNode* sigmoid = maker(node.inputs[gate], "HardSigmoid");
        if (sigmoid != nullptr && sigmoid->inputs[0] == node.inputs[1 - gate] &&
            near(sigmoid->real("alpha", 0.2), 1.0 / 6) && near(sigmoid->real("beta", 0.5), 0.5))
          return make("HardSwish", {sigmoid->inputs[0]});
      }
    const auto product = product_of(node);
    if (!product || !near(product->number, 1.0 / 6) || product->values.size() != 2) return std::nullopt;
    for (const std::size_t gate : {0u, 1u})
      if (is_shifted_clip(product->values[gate], x) && x == product->values[1 - gate])
        return make("HardSwish", {x});
    return std::nullopt;
  }

  // Recognises x (1 + erf(x / sqrt(2))) / 2 and x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
  // The factors may be in any order.
  Match gelu(const FileNode& node) const {
    if (!is_binary(node, "Mul") && !is_binary(node, "Div")) return std::nullopt;
    for (const std::string& x : possible_gelu_inputs(node)) {
      const auto product = product_of(node, x);
      if (!product || !near(product->number, 0.5) || product->values.size() != 2) continue;
      for (const std::size_t gate : {0u, 1u}) {
        std::string inner;
        if (product->values[1 - gate] != x || !is_sum(product->values[gate], 1, inner)) continue;
        if (const FileNode* erf = maker(inner, "Erf");
            erf != nullptr && is_scaled(erf->inputs[0], x, std::numbers::sqrt2 / 2))
          return make("Gelu", {x}, {{"approximate", std::string("none")}});
        if (const FileNode* tanh = maker(inner, "Tanh"); tanh != nullptr && is_cubic(tanh->inputs[0], x))
          return make("Gelu", {x}, {{"approximate", std::string("tanh")}});
      }
    }
    return std::nullopt;
  }
  // Returns the values from which an Erf or a Tanh among the factors of `node` is computed. If the
  // node is a GELU, one of them is its input.
  std::vector<std::string> possible_gelu_inputs(const FileNode& node) const {
    std::vector<std::string> values;
    std::string inner;
    for (const std::string& factor : factors_of(node, 0)) {
      if (!is_sum(factor, 1, inner)) continue;
      const FileNode* curve = maker(inner, "Erf");
      if (curve == nullptr) curve = maker(inner, "Tanh");
      if (curve != nullptr) add_values_before(curve->inputs[0], values, 0);
    }
    return values;
  }
  // Returns the factors of a product, and those of its factors, a few levels deep.
  std::vector<std::string> factors_of(const FileNode& node, int depth) const {
    constexpr int kLevels = 3;
    std::vector<std::string> factors;
    for (const std::string& input : node.inputs) {
      const FileNode* product = binary(input, "Mul");
      if (product == nullptr) product = binary(input, "Div");
      factors.push_back(input);
      if (product == nullptr || depth == kLevels) continue;
      for (std::string& factor : factors_of(*product, depth + 1)) factors.push_back(std::move(factor));
    }
    return factors;
  }
  // Appends the inputs of the nodes that compute `value`, up to three nodes back.
  void add_values_before(const std::string& value, std::vector<std::string>& values, int depth) const {
    constexpr int kNodesBack = 3;
    const auto made = maker_.find(value);
    if (made == maker_.end() || depth == kNodesBack) return;
    for (const std::string& input : graph_.nodes[made->second].inputs) {
      if (number(input)) continue;
      if (std::ranges::find(values, input) == values.end()) values.push_back(input);
      add_values_before(input, values, depth + 1);
    }
  }
  bool is_scaled(const std::string& value, const std::string& x, double number) const {
    Product product{x};
    collect(value, product);
    return near(product.number, number) && all_are(product.values, x, 1);
  }
  // Returns whether the value is sqrt(2 / pi) (x + 0.044715 x^3), also in the form sqrt(2 / pi) x
  // (1 + 0.044715 x^2).
  bool is_cubic(const std::string& value, const std::string& x) const {
    Product outer{x};
    collect(value, outer);
    if (!near(outer.number, std::sqrt(2 / std::numbers::pi)) || outer.values.empty()) return false;
    const bool outside = outer.values.size() == 2;
    for (std::size_t i = 0; i < outer.values.size(); ++i) {
      const FileNode* add = binary(outer.values[i], "Add");
      if (add == nullptr || (outside && outer.values[1 - i] != x)) continue;
      for (const std::size_t which : {0u, 1u}) {
        Product cube{x};
        collect(add->inputs[which], cube);
        const std::string& rest = add->inputs[1 - which];
        const bool fits = outside ? number(rest) == 1 : rest == x;
        if (fits && near(cube.number, 0.044715) && all_are(cube.values, x, outside ? 2 : 3)) return true;
      }
    }
    return false;
  }

  // Returns the axis over which a ReduceMean averages. Returns nothing if it averages over several
  // axes or if its output lacks the axis.
  std::optional<std::int64_t> mean_axis(const FileNode& mean) const {
    const auto listed = mean.has_input(1) ? constant(mean.inputs[1]) : std::nullopt;
    const auto axes = listed && listed->is_integer ? std::optional(listed->integers) : mean.integers("axes");
    if (!axes || axes->size() != 1 || mean.integer("keepdims", 1) == 0) return std::nullopt;
    return (*axes)[0];
  }
  // Returns whether the value is x - mean(x), with a mean over one axis. Sets `x` to the name of x.
  bool is_centred(const std::string& value, std::string& x, std::int64_t& axis) const {
    const FileNode* sub = binary(value, "Sub");
    const FileNode* mean = sub == nullptr ? nullptr : maker(sub->inputs[1], "ReduceMean");
    if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return false;
    const auto found = mean_axis(*mean);
    if (!found) return false;
    x = sub->inputs[0], axis = *found;
    return true;
  }
  // Returns epsilon if the value is sqrt(mean((x - mean(x))^2) + epsilon), with means over `axis`.
  // Otherwise returns nothing.
  std::optional<double> is_deviation(const std::string& value, const std::string& x,
                                     std::int64_t axis) const {
    const FileNode* root = maker(value, "Sqrt");
    const FileNode* sum = root == nullptr ? nullptr : binary(root->inputs[0], "Add");
    const auto epsilon = sum == nullptr ? std::nullopt : with_number(*sum);
    const FileNode* mean = epsilon ? maker(epsilon->value, "ReduceMean") : nullptr;
    if (mean == nullptr || mean_axis(*mean) != axis) return std::nullopt;
    std::string centred;
    if (const FileNode* pow = binary(mean->inputs[0], "Pow"); pow != nullptr && number(pow->inputs[1]) == 2)
      centred = pow->inputs[0];
    else if (const FileNode* mul = binary(mean->inputs[0], "Mul");
             mul != nullptr && mul->inputs[0] == mul->inputs[1])
      centred = mul->inputs[0];
    std::string same;
    std::int64_t same_axis = 0;
    if (!is_centred(centred, same, same_axis) || same != x || same_axis != axis) return std::nullopt;
    return epsilon->number;
  }
  Match channel_norm(const FileNode& node) const {
    if (!is_binary(node, "Add")) return std::nullopt;
    for (const std::size_t scaled : {0u, 1u}) {
      const FileNode* mul = binary(node.inputs[scaled], "Mul");
      for (const std::size_t normed : {0u, 1u}) {
        const FileNode* div = mul == nullptr ? nullptr : binary(mul->inputs[normed], "Div");
        std::string x;
        std::int64_t axis = 0;
        if (div == nullptr || !is_centred(div->inputs[0], x, axis)) continue;
        if (const auto epsilon = is_deviation(div->inputs[1], x, axis))
          return make("ChannelNorm", {x, mul->inputs[1 - normed], node.inputs[1 - scaled]},
                      {{"axis", axis}, {"epsilon", static_cast<float>(*epsilon)}});
      }
    }
    return std::nullopt;
  }

  // Recognises PyTorch's group norm: an instance norm of [N, groups, -1] that is reshaped to the
  // image, multiplied by a weight and added to a bias.
  Match group_norm(const FileNode& node) const {
    if (!is_binary(node, "Add")) return std::nullopt;
    for (const std::size_t scaled : {0u, 1u}) {
      const FileNode* mul = binary(node.inputs[scaled], "Mul");
      for (const std::size_t normed : {0u, 1u}) {
        const FileNode* back = mul == nullptr ? nullptr : maker(mul->inputs[normed], "Reshape");
        const FileNode* norm = back == nullptr ? nullptr : maker(back->inputs[0], "InstanceNormalization");
        const FileNode* groups =
            norm == nullptr || norm->inputs.size() != 3 ? nullptr : maker(norm->inputs[0], "Reshape");
        if (groups == nullptr || groups->inputs.size() != 2) continue;
        const auto scale = constant(norm->inputs[1]), shift = constant(norm->inputs[2]),
                   target = constant(groups->inputs[1]);
        if (!scale || !shift || !target || !all_equal(*scale, 1) || !all_equal(*shift, 0)) continue;
        if (!target->is_integer || target->size() != 3 || target->integers[1] != scale->size()) continue;
        return make(
            "GroupNorm", {groups->inputs[0], mul->inputs[1 - normed], node.inputs[1 - scaled]},
            {{"num_groups", scale->size()}, {"epsilon", static_cast<float>(norm->real("epsilon", 1e-5))}});
      }
    }
    return std::nullopt;
  }
  // Goes back from a value through the first inputs of nodes to a node of type `op`. Returns this
  // node, or null if a node on the way has a type that is not in `past`. A space precedes and
  // follows each type in `past`.
  const FileNode* first_before(const std::string& value, std::string_view op, std::string_view past) const {
    const FileNode* node = nullptr;
    for (auto found = maker_.find(value); found != maker_.end(); found = maker_.find(node->inputs[0])) {
      node = &graph_.nodes[found->second];
      if (node->inputs.empty() || !node->domain.empty()) return nullptr;
      if (node->op == op) return node;
      if (past.find(" " + node->op + " ") == std::string_view::npos) return nullptr;
    }
    return nullptr;
  }
  // Recognises x / (k + alpha mean(x^2))^beta as PyTorch exports LocalResponseNorm. The mean over
  // channels is an average pool over the depth of [N, 1, C, H, W]. After the pool there may be an
  // If that tests its shape.
  Match local_response_norm(const FileNode& node) const {
    const FileNode* power = is_binary(node, "Div") ? binary(node.inputs[1], "Pow") : nullptr;
    const FileNode* sum = power == nullptr ? nullptr : binary(power->inputs[0], "Add");
    const auto k = sum == nullptr ? std::nullopt : with_number(*sum);
    const FileNode* scaled = k ? binary(k->value, "Mul") : nullptr;
    const auto alpha = scaled == nullptr ? std::nullopt : with_number(*scaled);
    const auto beta = alpha ? number(power->inputs[1]) : std::nullopt;
    const FileNode* pool =
        beta ? first_before(alpha->value, "AveragePool", " Reshape If Equal Gather Shape Squeeze ") : nullptr;
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
    } else if (!pads_both_sides(pool->inputs[0], half)) {
      return std::nullopt;
    }
    const FileNode* square = first_before(pool->inputs[0], "Mul", " Pad Reshape Unsqueeze ");
    if (square == nullptr || square->inputs != std::vector{node.inputs[0], node.inputs[0]})
      return std::nullopt;
    return make("LRN", {node.inputs[0]},
                {{"size", (*kernel)[0]},
                 {"alpha", static_cast<float>(alpha->number)},
                 {"beta", static_cast<float>(*beta)},
                 {"bias", static_cast<float>(k->number)}});
  }
  // Returns whether the Pads before a value [N, 1, C, H, W] pad C by `amount` on both sides, and
  // nothing else. PyTorch may compute the amounts in other nodes. These are not evaluated here, so
  // such amounts are assumed to be right.
  bool pads_both_sides(const std::string& value, std::int64_t amount) const {
    constexpr std::int64_t kAxes = 5, kChannels = 2;
    std::vector<std::int64_t> sum(2 * kAxes);
    bool known = true;
    const FileNode* pad = nullptr;
    for (const std::string* from = &value;
         (pad = first_before(*from, "Pad", " Reshape Unsqueeze ")) != nullptr; from = &pad->inputs[0]) {
      const auto amounts = pad->inputs.size() > 1 ? constant(pad->inputs[1]) : std::nullopt;
      known = known && amounts && amounts->size() == std::ssize(sum);
      for (std::int64_t i = 0; known && i < std::ssize(sum); ++i)
        sum[static_cast<std::size_t>(i)] += static_cast<std::int64_t>(amounts->at(i));
    }
    for (std::int64_t i = 0; known && i < std::ssize(sum); ++i)
      if (sum[static_cast<std::size_t>(i)] != (i % kAxes == kChannels ? amount : 0)) return false;
    return true;
  }
  static bool all_equal(const Constant& constant, double number) {
    for (std::int64_t i = 0; i < constant.size(); ++i)
      if (constant.at(i) != number) return false;
    return !constant.is_integer;
  }

  FileGraph& graph_;
  std::map<std::string, std::size_t> maker_;
};

void remove_unused(FileGraph& graph) {
  std::set<std::string> needed(graph.outputs.begin(), graph.outputs.end());
  std::vector<FileNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::ranges::none_of(node->outputs,
                             [&](const std::string& output) { return needed.contains(output); }))
      continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
}

}  // namespace

void recognise_patterns(FileGraph& graph) {
  Recogniser(graph).run();
  remove_unused(graph);
}

}  // namespace convoy::app::onnx_import
