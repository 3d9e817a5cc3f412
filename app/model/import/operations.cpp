#include "app/model/import/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace convoy::app::onnx_import {
namespace {

// Returns all operations, sorted by name.
const Operations& operations() {
  static const Operations table = [] {
    Operations all;
    for (const Operations* some : {&product_operations(), &norm_operations(), &activation_operations(),
                                   &pool_operations(), &arithmetic_operations(), &move_operations()})
      all.insert(all.end(), some->begin(), some->end());
    std::ranges::sort(all, {}, &Operation::op);
    return all;
  }();
  return table;
}

// Returns whether `op` is a name from patterns.h for an operation that ONNX does not have.
bool is_own(std::string_view op) { return op == "ChannelNorm" || op == "GroupNorm" || op == "Silu"; }

// Returns the kind of network that has this operation, for an error message, or an empty text if it
// is not known.
std::string_view kind_of(std::string_view op) {
  struct Kind {
    std::string_view ops, what;
  };
  static constexpr std::array kKinds{
      Kind{" NonMaxSuppression TopK RoiAlign MaxRoiPool NonZero GatherND ScatterND ", "detection networks"},
      Kind{" Resize Upsample ConvTranspose GridSample DepthToSpace MaxUnpool ", "networks that give images"},
      Kind{" Attention MultiHeadAttention Einsum GatherElements ", "transformers"},
      Kind{" LSTM GRU RNN Scan Loop If ", "recurrent networks and control flow"},
      Kind{" QLinearConv QuantizeLinear DequantizeLinear ConvInteger MatMulInteger DynamicQuantizeLinear ",
           "quantised networks"}};
  for (const Kind& kind : kKinds)
    if (kind.ops.find(fmt::format(" {} ", op)) != std::string_view::npos) return kind.what;
  return {};
}

}  // namespace

const Operation* find_operation(std::string_view op) {
  const auto found = std::ranges::find(operations(), op, &Operation::op);
  return found == operations().end() ? nullptr : &*found;
}

void refuse(const FileNode& node) {
  std::string supported;
  for (const Operation& operation : operations())
    if (!is_own(operation.op)) supported += fmt::format("{}{}", supported.empty() ? "" : ", ", operation.op);
  const std::string_view kind = kind_of(node.op);
  const std::string reason =
      kind.empty() ? std::string() : fmt::format(" ({} are not: Convoy trains classifiers)", kind);
  node.fail(fmt::format("the operation is not supported{}; supported are {}, and arithmetic of shapes",
                        reason, supported));
}

void refuse_foreign(const FileGraph& graph) {
  // Maps each value that is computed from the images to the node that computes it.
  std::map<std::string, const FileNode*> maker;
  for (const FileInput& input : graph.inputs) maker[input.name] = nullptr;
  const auto is_computed = [&](const std::string& value) { return maker.contains(value); };
  for (const FileNode& node : graph.nodes)
    if (node.op != "Shape" && std::ranges::any_of(node.inputs, is_computed))
      for (const std::string& output : node.outputs) maker[output] = &node;
  const auto softmax_before = [&](const std::string& value) {
    for (auto found = maker.find(value); found != maker.end() && found->second != nullptr;
         found = maker.find(found->second->inputs[0])) {
      const std::string& op = found->second->op;
      if (op == "Softmax") return true;
      if (op != "Dropout" && op != "Cast" && op != "Identity" && op != "Reshape") return false;
    }
    return false;
  };
  for (const FileNode& node : graph.nodes) {
    if (!node.domain.empty()) continue;
    if (!kind_of(node.op).empty()) refuse(node);
    if (node.op == "MatMul" && std::ranges::all_of(node.inputs, is_computed) &&
        std::ranges::any_of(node.inputs, softmax_before))
      node.fail(
          "multiplies by a Softmax, as the attention of transformers does, which is not supported; Convoy "
          "trains convolutional networks");
  }
}

void check_attributes(const FileNode& node, const Operation& operation) {
  for (const auto& [name, value] : node.attributes)
    if (std::ranges::find(operation.attributes, name) == operation.attributes.end())
      node.fail(fmt::format("attribute {} is not supported", name));
}

}  // namespace convoy::app::onnx_import
