#include "app/model/import/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace convoy::app::onnx_import {
namespace {

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table{
      {"Add", import_arithmetic, {}},
      {"AveragePool",
       import_average_pool,
       {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"}},
      {"BatchNormalization", import_batch_norm, {"epsilon", "momentum", "training_mode"}},
      {"Cast", import_cast, {"to", "saturate"}},
      {"ChannelNorm", import_channel_norm, {"axis", "epsilon"}},
      {"Clip", import_clip, {"max", "min"}},
      {"Concat", import_concat, {"axis"}},
      {"Conv", import_conv, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
      {"Div", import_arithmetic, {}},
      {"Dropout", import_dropout, {"ratio", "seed"}},
      {"Flatten", import_flatten, {"axis"}},
      {"Gather", import_gather, {"axis"}},
      {"Gelu", import_gelu, {"approximate"}},
      {"Gemm", import_gemm, {"alpha", "beta", "transA", "transB"}},
      {"GlobalAveragePool", import_global_pool, {}},
      {"GlobalMaxPool", import_global_pool, {}},
      {"GroupNorm", import_group_norm, {"epsilon", "num_groups"}},
      {"GroupNormalization", import_group_norm, {"epsilon", "num_groups", "stash_type"}},
      {"HardSigmoid", import_hard_sigmoid, {"alpha", "beta"}},
      {"HardSwish", import_activation, {}},
      {"Identity", import_identity, {}},
      {"InstanceNormalization", import_instance_norm, {"epsilon"}},
      {"LRN", import_lrn, {"alpha", "beta", "bias", "size"}},
      {"LayerNormalization", import_layer_norm, {"axis", "epsilon", "stash_type"}},
      {"LeakyRelu", import_leaky_relu, {"alpha"}},
      {"LogSoftmax", import_softmax, {"axis"}},
      {"MatMul", import_matmul, {}},
      {"MaxPool",
       import_max_pool,
       {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"}},
      {"Mul", import_arithmetic, {}},
      {"Neg", import_neg, {}},
      {"PRelu", import_prelu, {}},
      {"Pad", import_pad, {"mode", "pads", "value"}},
      {"ReduceMax", import_reduce, {"axes", "keepdims"}},
      {"ReduceMean", import_reduce, {"axes", "keepdims"}},
      {"Relu", import_relu, {}},
      {"Reshape", import_reshape, {"allowzero"}},
      {"Shape", import_shape, {"end", "start"}},
      {"Sigmoid", import_activation, {}},
      {"Silu", import_activation, {}},
      {"Slice", import_slice, {"axes", "ends", "starts"}},
      {"Softmax", import_softmax, {"axis"}},
      {"Split", import_split, {"axis", "num_outputs", "split"}},
      {"Squeeze", import_squeeze, {"axes"}},
      {"Sub", import_arithmetic, {}},
      {"Sum", import_arithmetic, {}},
      {"Swish", import_activation, {"alpha"}},
      {"Transpose", import_transpose, {"perm"}},
      {"Unsqueeze", import_unsqueeze, {"axes"}},
  };
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
      Kind{" LSTM GRU RNN Scan Loop If ", "networks with control flow"},
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
