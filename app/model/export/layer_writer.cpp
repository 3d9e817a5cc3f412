#include "app/model/export/layer_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace convoy::app::onnx_export {
namespace {

std::vector<float> values_of(const ParameterSpec& spec) {
  if (spec.values) return *spec.values;
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
  initialize(spec, 1, values.data());
  return values;
}

Dims dims_of(const Shape& shape) {
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

Dims twice(const std::array<int, 2>& values) { return {values[0], values[1], values[0], values[1]}; }

const ParameterSpec& find(const Layer& layer, std::string_view key) {
  for (const auto* specs : {&layer.parameters, &layer.states})
    for (const ParameterSpec& spec : *specs)
      if (spec.key == key) return spec;
  throw std::logic_error("layer " + layer.name + " has no parameter " + std::string(key));
}

}  // namespace

LayerWriter::LayerWriter(onnx::GraphProto& graph, const Network& network, bool fold_batch_norm)
    : graph_(graph), proto_(graph), network_(network), fold_(fold_batch_norm) {
  if (fold_) find_folded();
}

void LayerWriter::find_folded() {
  std::map<LayerId, int> readers;
  for (const Layer& layer : network_.layers())
    for (const LayerId input : layer.inputs) ++readers[input];
  for (LayerId id = 0; id < std::ssize(network_.layers()); ++id) {
    if (!std::holds_alternative<BatchNorm>(layer(id).op)) continue;
    const LayerId before = layer(id).inputs[0];
    if (std::holds_alternative<Conv2d>(layer(before).op) && readers[before] == 1) norm_of_[before] = id;
  }
}

std::int64_t LayerWriter::write() {
  const std::vector<LayerId> outputs = network_.outputs();
  for (id_ = 0; id_ < std::ssize(network_.layers()); ++id_) {
    value_.push_back(id_ == outputs[0] ? "logits" : layer().name);
    std::visit([&](const auto& op) { write(op); }, layer().op);
  }
  OnnxGraph::declare(*proto_.add_input(), value_.front(), network_.shape(0));
  for (const LayerId output : outputs)
    OnnxGraph::declare(*proto_.add_output(), value_[static_cast<std::size_t>(output)],
                       network_.shape(output));
  return parameters_;
}

std::string LayerWriter::input(int index) const {
  return value_[static_cast<std::size_t>(layer().inputs[index])];
}

std::vector<std::string> LayerWriter::inputs() const {
  std::vector<std::string> names;
  for (int i = 0; i < std::ssize(layer().inputs); ++i) names.push_back(input(i));
  return names;
}

const ParameterSpec& LayerWriter::spec(std::string_view key) const { return find(layer(), key); }

std::string LayerWriter::parameter(std::string_view key, Dims dims) {
  const ParameterSpec& found = spec(key);
  if (dims.empty()) dims = dims_of(found.shape);
  const bool is_state = std::ranges::find(layer().states, key, &ParameterSpec::key) != layer().states.end();
  if (!is_state) parameters_ += found.shape.elements();
  return graph_.constant(found.name, dims, values_of(found));
}

Dims LayerWriter::over_channels(std::int64_t count) const {
  return shape().rank() == 4 ? Dims{count, 1, 1} : Dims{count};
}

void LayerWriter::write(const Input&) { value_.back() = "images"; }

void LayerWriter::write_convolution(const Conv2d& conv, const std::vector<std::string>& operands) {
  graph_.node("Conv", operands, output())
      .set("kernel_shape", Dims{conv.kernel[0], conv.kernel[1]})
      .set("strides", Dims{conv.stride[0], conv.stride[1]})
      .set("pads", twice(conv.padding))
      .set("dilations", Dims{conv.dilation[0], conv.dilation[1]})
      .set("group", std::int64_t{conv.groups});
}

void LayerWriter::write(const Conv2d& conv) {
  if (conv.relu) throw std::logic_error("export of a fused network");
  const auto folded = norm_of_.find(id_);
  if (folded == norm_of_.end()) {
    std::vector<std::string> operands{input(), parameter("weight")};
    if (conv.bias) operands.push_back(parameter("bias"));
    return write_convolution(conv, operands);
  }
  const Layer& norm = layer(folded->second);
  const auto gamma = values_of(find(norm, "weight")), beta = values_of(find(norm, "bias")),
             mean = values_of(find(norm, "running_mean")), variance = values_of(find(norm, "running_var"));
  const double epsilon = std::get<BatchNorm>(norm.op).epsilon;
  std::vector<float> weight = values_of(spec("weight"));
  std::vector<float> bias = conv.bias ? values_of(spec("bias")) : std::vector<float>(gamma.size(), 0.0f);
  const std::size_t row = weight.size() / gamma.size();
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
    for (std::size_t i = c * row; i < (c + 1) * row; ++i) weight[i] = static_cast<float>(weight[i] * scale);
    bias[c] = static_cast<float>((static_cast<double>(bias[c]) - mean[c]) * scale + beta[c]);
  }
  parameters_ += std::ssize(weight) + std::ssize(bias);
  const std::string weights = graph_.constant(spec("weight").name, dims_of(spec("weight").shape), weight);
  const std::string name = conv.bias ? spec("bias").name : layer().name + ".bias";
  write_convolution(conv, {input(), weights, graph_.constant(name, {std::ssize(bias)}, bias)});
}

void LayerWriter::write(const BatchNorm& norm) {
  if (norm.relu || layer().inputs.size() > 1) throw std::logic_error("export of a fused network");
  if (norm_of_.contains(layer().inputs[0])) {
    value_.back() = input();
    return;
  }
  graph_
      .node("BatchNormalization",
            {input(), parameter("weight"), parameter("bias"), parameter("running_mean"),
             parameter("running_var")},
            output())
      .set("epsilon", static_cast<float>(norm.epsilon))
      .set("momentum", static_cast<float>(1 - norm.momentum));
}

// Moves the channels to the last axis and back, because ONNX's LayerNormalization works only on the
// last axes.
void LayerWriter::write(const LayerNorm& norm) {
  const bool image = shape().rank() == 4;
  const std::string rows = image ? part("channels_last") : input(),
                    result = image ? part("normal") : output();
  if (image) graph_.node("Transpose", {input()}, rows).set("perm", Dims{0, 2, 3, 1});
  graph_.node("LayerNormalization", {rows, parameter("weight"), parameter("bias")}, result)
      .set("axis", std::int64_t{-1})
      .set("epsilon", norm.epsilon);
  if (image) graph_.node("Transpose", {result}, output()).set("perm", Dims{0, 3, 1, 2});
}

// Writes a group norm as an instance norm in which each group is one channel. ONNX has a group norm
// only since opset 18, and the file is written in opset 17.
void LayerWriter::write(const GroupNorm& norm) {
  const std::vector<float> ones(static_cast<std::size_t>(norm.groups), 1.0f), zeros(ones.size(), 0.0f);
  Dims whole = dims_of(shape());
  whole[0] = 0;  // in ONNX's Reshape, 0 keeps the extent of the batch
  graph_.node("Reshape", {input(), graph_.constant(part("groups"), {0, norm.groups, -1})}, part("grouped"));
  graph_
      .node("InstanceNormalization",
            {part("grouped"), graph_.constant(part("ones"), {norm.groups}, ones),
             graph_.constant(part("zeros"), {norm.groups}, zeros)},
            part("normal"))
      .set("epsilon", norm.epsilon);
  graph_.node("Reshape", {part("normal"), graph_.constant(part("shape"), whole)}, part("image"));
  graph_.node("Mul", {part("image"), parameter("weight", over_channels(shape()[1]))}, part("scaled"));
  graph_.node("Add", {part("scaled"), parameter("bias", over_channels(shape()[1]))}, output());
}

void LayerWriter::write(const Relu&) { graph_.node("Relu", {input()}, output()); }

void LayerWriter::write(const Activation& activation) {
  using kernels::ActivationKind;
  const kernels::ActivationProblem& f = activation.function;
  const auto bound = [&](const char* name, float value) {
    return std::isinf(value) ? std::string() : graph_.scalar(part(name), value);
  };
  switch (f.kind) {
    case ActivationKind::clip: {
      const std::string low = bound("min", f.min), high = bound("max", f.max);
      graph_.node("Clip", {input(), low, high}, output());
      return;
    }
    case ActivationKind::leaky_relu:
      graph_.node("LeakyRelu", {input()}, output()).set("alpha", f.slope);
      return;
    case ActivationKind::sigmoid:
      graph_.node("Sigmoid", {input()}, output());
      return;
    case ActivationKind::hard_sigmoid:
      graph_.node("HardSigmoid", {input()}, output()).set("alpha", f.slope).set("beta", f.offset);
      return;
    case ActivationKind::hard_swish:
      graph_.node("HardSwish", {input()}, output());
      return;
    case ActivationKind::silu:
      graph_.node("Sigmoid", {input()}, part("sigmoid"));
      graph_.node("Mul", {input(), part("sigmoid")}, output());
      return;
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh:
      return write_gelu(f.kind == ActivationKind::gelu_tanh);
    case ActivationKind::affine:
      graph_.node("Mul", {input(), graph_.scalar(part("slope"), f.slope)}, part("scaled"));
      graph_.node("Add", {part("scaled"), graph_.scalar(part("offset"), f.offset)}, output());
      return;
  }
  throw std::logic_error("an activation that export does not know");
}

// Writes GELU as PyTorch does: x (1 + erf(x / sqrt(2))) / 2, or the approximation with tanh.
void LayerWriter::write_gelu(bool tanh) {
  std::string inner = part("scaled");
  if (tanh) {
    graph_.node("Mul", {input(), input()}, part("square"));
    graph_.node("Mul", {part("square"), input()}, part("cube"));
    graph_.node("Mul", {part("cube"), graph_.scalar(part("cubic"), 0.044715f)}, part("small"));
    graph_.node("Add", {input(), part("small")}, part("sum"));
    const auto factor = static_cast<float>(std::sqrt(2.0 / std::numbers::pi));
    graph_.node("Mul", {part("sum"), graph_.scalar(part("factor"), factor)}, inner);
  } else {
    const auto root = static_cast<float>(std::numbers::sqrt2);
    graph_.node("Div", {input(), graph_.scalar(part("root"), root)}, inner);
  }
  graph_.node(tanh ? "Tanh" : "Erf", {inner}, part("curve"));
  graph_.node("Add", {part("curve"), graph_.scalar(part("one"), 1)}, part("raised"));
  graph_.node("Mul", {input(), part("raised")}, part("product"));
  graph_.node("Mul", {part("product"), graph_.scalar(part("half"), 0.5f)}, output());
}

void LayerWriter::write(const Prelu& prelu) {
  graph_.node("PRelu",
              {input(), parameter("weight", prelu.per_channel ? over_channels(shape()[1]) : Dims{1})},
              output());
}

void LayerWriter::write(const Add&) {
  graph_.node(layer().inputs.size() == 2 ? "Add" : "Sum", inputs(), output());
}

void LayerWriter::write(const Multiply&) { graph_.node("Mul", inputs(), output()); }

void LayerWriter::write(const Scale&) {
  graph_.node("Mul", {input(), parameter("weight", over_channels(shape()[1]))}, output());
}

void LayerWriter::write(const Bias&) {
  graph_.node("Add", {input(), parameter("bias", over_channels(shape()[1]))}, output());
}

void LayerWriter::write(const Concat&) {
  graph_.node("Concat", inputs(), output()).set("axis", std::int64_t{1});
}

void LayerWriter::write(const Slice& slice) {
  const std::string begin = graph_.constant(part("begin"), {slice.begin});
  const std::string end = graph_.constant(part("end"), {slice.begin + slice.count});
  graph_.node("Slice", {input(), begin, end, graph_.constant(part("axis"), {1})}, output());
}

void LayerWriter::write(const ChannelShuffle& shuffle) {
  const Shape& x = shape();
  const std::int64_t pixels = x.rank() == 4 ? x[2] * x[3] : 1;
  Dims whole = dims_of(x);
  whole[0] = 0;  // in ONNX's Reshape, 0 keeps the extent of the batch
  const std::string groups =
      graph_.constant(part("groups"), {0, shuffle.groups, x[1] / shuffle.groups, pixels});
  graph_.node("Reshape", {input(), groups}, part("grouped"));
  graph_.node("Transpose", {part("grouped")}, part("turned")).set("perm", Dims{0, 2, 1, 3});
  graph_.node("Reshape", {part("turned"), graph_.constant(part("shape"), whole)}, output());
}

void LayerWriter::write(const Pad& pad) {
  const kernels::PadProblem& p = pad.amounts;
  const std::string amounts =
      graph_.constant(part("amounts"), {0, 0, p.top, p.left, 0, 0, p.bottom, p.right});
  graph_.node("Pad", {input(), amounts, graph_.scalar(part("value"), p.value)}, output());
}

// Returns the padding at the end of each axis. With ceil_mode, ONNX keeps a last window that starts
// in the padding, but Convoy and PyTorch leave it out. Such a pool is written without ceil_mode,
// with padding that gives the same windows as in Convoy.
std::array<std::int64_t, 2> LayerWriter::end_padding(const Pool& pool, bool& ceil_mode) const {
  std::array<std::int64_t, 2> end{pool.padding[0], pool.padding[1]};
  if (!pool.ceil_mode) return end;
  std::array<std::int64_t, 2> needed{};
  ceil_mode = true;
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t extent = shape()[axis + 2], stride = pool.stride[axis], window = pool.window[axis];
    const std::int64_t windows = layer().output[axis + 2], room = extent + 2 * pool.padding[axis] - window;
    if (windows != (room + stride - 1) / stride + 1) ceil_mode = false;
    needed[axis] = std::max<std::int64_t>(0, (windows - 1) * stride + window - extent - pool.padding[axis]);
  }
  return ceil_mode ? end : needed;
}

void LayerWriter::write(const Pool& pool) {
  if (pool.relu) throw std::logic_error("export of a fused network");
  const bool max = pool.kind == kernels::PoolKind::max;
  if (pool.window[0] == 0) {
    graph_.node(max ? "GlobalMaxPool" : "GlobalAveragePool", {input()}, output());
    return;
  }
  bool ceil_mode = false;
  const auto end = end_padding(pool, ceil_mode);
  OnnxNode node = graph_.node(max ? "MaxPool" : "AveragePool", {input()}, output());
  node.set("kernel_shape", Dims{pool.window[0], pool.window[1]})
      .set("strides", Dims{pool.stride[0], pool.stride[1]})
      .set("pads", Dims{pool.padding[0], pool.padding[1], end[0], end[1]})
      .set("ceil_mode", std::int64_t{ceil_mode});
  if (!max) node.set("count_include_pad", std::int64_t{pool.count_include_pad});
}

void LayerWriter::write(const Flatten&) {
  graph_.node("Flatten", {input()}, output()).set("axis", std::int64_t{1});
}

void LayerWriter::write(const Softmax&) {
  graph_.node("Softmax", {input()}, output()).set("axis", std::int64_t{1});
}

void LayerWriter::write(const LocalResponseNorm& norm) {
  graph_.node("LRN", {input()}, output())
      .set("size", std::int64_t{norm.size})
      .set("alpha", norm.alpha)
      .set("beta", norm.beta)
      .set("bias", norm.k);
}

// ONNX has no stochastic depth (`whole_samples`). It is written as an identity, because it does
// nothing at inference.
void LayerWriter::write(const Dropout& dropout) {
  if (dropout.whole_samples)
    graph_.node("Identity", {input()}, output());
  else
    graph_.node("Dropout", {input(), graph_.scalar(part("rate"), dropout.rate)}, output());
}

void LayerWriter::write(const Linear& linear) {
  std::string rows = input();
  if (shape().rank() == 4)
    graph_.node("Flatten", {input()}, rows = part("rows")).set("axis", std::int64_t{1});
  std::vector<std::string> operands{rows, parameter("weight")};
  if (linear.bias) operands.push_back(parameter("bias"));
  graph_.node("Gemm", operands, output()).set("transB", std::int64_t{1});
}

}  // namespace convoy::app::onnx_export
