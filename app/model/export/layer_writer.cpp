#include "app/model/export/layer_writer.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace convoy::app::onnx_export {
namespace {

std::vector<float> values_of(const ParameterSpec& spec) {
  if (spec.values) return *spec.values;
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
  initialize(spec, 1, values.data());
  return values;
}

const ParameterSpec& find(const Layer& layer, std::string_view key) {
  for (const auto* specs : {&layer.parameters, &layer.states})
    for (const ParameterSpec& spec : *specs)
      if (spec.key == key) return spec;
  throw std::logic_error("layer " + layer.name + " has no parameter " + std::string(key));
}

}  // namespace

Dims dims_of(const Shape& shape) {
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

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
    value_.push_back(id_ == 0 ? "images" : id_ == outputs[0] ? "logits" : layer().name);
    std::visit([&](const auto& op) { op.write(*this); }, layer().op);
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

std::string LayerWriter::parameter(std::string_view key, Dims dims) {
  const ParameterSpec& found = find(layer(), key);
  if (dims.empty()) dims = dims_of(found.shape);
  const bool is_state = std::ranges::find(layer().states, key, &ParameterSpec::key) != layer().states.end();
  if (found.constant) return graph_.constant_node(part(found.key.c_str()), dims, values_of(found));
  if (!is_state) parameters_ += found.shape.elements();
  return graph_.constant(found.name, dims, values_of(found));
}

Dims LayerWriter::over_channels(std::int64_t count) const {
  return shape().rank() == 4 ? Dims{count, 1, 1} : Dims{count};
}

std::vector<std::string> LayerWriter::convolution_operands(bool has_bias) {
  const auto folded = norm_of_.find(id_);
  if (folded == norm_of_.end()) {
    std::vector<std::string> operands{input(), parameter("weight")};
    if (has_bias) operands.push_back(parameter("bias"));
    return operands;
  }
  const Layer& norm = layer(folded->second);
  const auto gamma = values_of(find(norm, "weight")), beta = values_of(find(norm, "bias")),
             mean = values_of(find(norm, "running_mean")), variance = values_of(find(norm, "running_var"));
  const double epsilon = std::get<BatchNorm>(norm.op).epsilon;
  const ParameterSpec& kernel = find(layer(), "weight");
  std::vector<float> weight = values_of(kernel);
  std::vector<float> bias =
      has_bias ? values_of(find(layer(), "bias")) : std::vector<float>(gamma.size(), 0.0f);
  const std::size_t row = weight.size() / gamma.size();
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
    for (std::size_t i = c * row; i < (c + 1) * row; ++i) weight[i] = static_cast<float>(weight[i] * scale);
    bias[c] = static_cast<float>((static_cast<double>(bias[c]) - mean[c]) * scale + beta[c]);
  }
  parameters_ += std::ssize(weight) + std::ssize(bias);
  const std::string weights = graph_.constant(kernel.name, dims_of(kernel.shape), weight);
  const std::string name = has_bias ? find(layer(), "bias").name : layer().name + ".bias";
  return {input(), weights, graph_.constant(name, {std::ssize(bias)}, bias)};
}

}  // namespace convoy::app::onnx_export
