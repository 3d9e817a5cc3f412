#include "app/model/export/onnx_graph.h"

#include <onnx/onnx_pb.h>

namespace convoy::app::onnx_export {
namespace {

onnx::AttributeProto& add(onnx::NodeProto& node, const char* attribute,
                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& added = *node.add_attribute();
  added.set_name(attribute);
  added.set_type(type);
  return added;
}

void describe(onnx::TensorProto& tensor, const Dims& dims, onnx::TensorProto::DataType type) {
  tensor.set_data_type(type);
  for (const std::int64_t extent : dims) tensor.add_dims(extent);
}

onnx::TensorProto& add_tensor(onnx::GraphProto& graph, const std::string& name, const Dims& dims,
                              onnx::TensorProto::DataType type) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  describe(tensor, dims, type);
  return tensor;
}

}  // namespace

OnnxNode& OnnxNode::set(const char* attribute, std::int64_t value) {
  add(node_, attribute, onnx::AttributeProto::INT).set_i(value);
  return *this;
}

OnnxNode& OnnxNode::set(const char* attribute, float value) {
  add(node_, attribute, onnx::AttributeProto::FLOAT).set_f(value);
  return *this;
}

OnnxNode& OnnxNode::set(const char* attribute, const Dims& values) {
  onnx::AttributeProto& added = add(node_, attribute, onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) added.add_ints(value);
  return *this;
}

OnnxNode OnnxGraph::node(const char* op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type(op);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return OnnxNode(node);
}

std::string OnnxGraph::constant(const std::string& name, const Dims& dims, std::span<const float> values) {
  add_tensor(graph_, name, dims, onnx::TensorProto::FLOAT).set_raw_data(values.data(), values.size_bytes());
  return name;
}

std::string OnnxGraph::constant(const std::string& name, const Dims& integers) {
  add_tensor(graph_, name, {std::ssize(integers)}, onnx::TensorProto::INT64)
      .set_raw_data(integers.data(), integers.size() * sizeof(std::int64_t));
  return name;
}

std::string OnnxGraph::constant_node(const std::string& name, const Dims& dims,
                                     std::span<const float> values) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_op_type("Constant");
  node.set_name(name);
  node.add_output(name);
  onnx::TensorProto& tensor = *add(node, "value", onnx::AttributeProto::TENSOR).mutable_t();
  describe(tensor, dims, onnx::TensorProto::FLOAT);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return name;
}

void OnnxGraph::declare(onnx::ValueInfoProto& value, const std::string& name, const kernels::Shape& shape) {
  value.set_name(name);
  onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (int axis = 1; axis < shape.rank(); ++axis) type.mutable_shape()->add_dim()->set_dim_value(shape[axis]);
}

}  // namespace convoy::app::onnx_export
