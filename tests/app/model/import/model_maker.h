#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "app/model/import/model_file.h"
#include "app/model/import/onnx_file.h"

namespace convoy::app::onnx_import {

class ModelMaker {
 public:
  // Makes a model with the input "x", which has the extents `input`, and the output "y". An extent
  // of -1 is left open in the file.
  explicit ModelMaker(const Dims& input, std::int64_t opset = 13) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
    onnx::ValueInfoProto* value = graph().add_input();
    value->set_name("x");
    auto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::int64_t extent : input) {
      auto* dim = shape->add_dim();
      if (extent < 0)
        dim->set_dim_param("open");
      else
        dim->set_dim_value(extent);
    }
    add_output("y");
  }

  onnx::ModelProto& model() { return model_; }
  const onnx::ModelProto& model() const { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  void add_output(const std::string& name) { graph().add_output()->set_name(name); }

  struct Attributes {
    std::map<std::string, std::int64_t> integers = {};
    std::map<std::string, float> reals = {};
    std::map<std::string, std::vector<std::int64_t>> lists = {};
    std::map<std::string, std::string> texts = {};
  };

  // Both functions add a node and return the name of its output.
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                   const Attributes& attributes) {
    onnx::NodeProto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name("the_" + output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    for (const auto& [name, value] : attributes.integers)
      attribute(*node, name, onnx::AttributeProto::INT)->set_i(value);
    for (const auto& [name, value] : attributes.reals)
      attribute(*node, name, onnx::AttributeProto::FLOAT)->set_f(value);
    for (const auto& [name, value] : attributes.texts)
      attribute(*node, name, onnx::AttributeProto::STRING)->set_s(value);
    for (const auto& [name, values] : attributes.lists) {
      auto* list = attribute(*node, name, onnx::AttributeProto::INTS);
      for (const std::int64_t value : values) list->add_ints(value);
    }
    return output;
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
    return node(op, inputs, output, {});
  }

  // Adds an initialiser with small values, which repeat after 17 elements. They are positive if the
  // name is that of a variance. Returns its name.
  std::string weight(const std::string& name, const Dims& dims) {
    const float first = name.ends_with("var") ? 0.05f : -0.05f;
    onnx::TensorProto* tensor = initialiser(name, dims, onnx::TensorProto::FLOAT);
    for (std::int64_t i = 0, count = elements_of(dims); i < count; ++i)
      tensor->add_float_data(0.01f * static_cast<float>(i % 17) + first);
    return name;
  }
  // Adds an initialiser whose values are all `value`. Returns its name.
  std::string filled(const std::string& name, const Dims& dims, float value) {
    onnx::TensorProto* tensor = initialiser(name, dims, onnx::TensorProto::FLOAT);
    for (std::int64_t i = 0, count = elements_of(dims); i < count; ++i) tensor->add_float_data(value);
    return name;
  }
  // Adds a Constant node whose values are `first`, `first + step`, … Returns its output's name.
  std::string constant(const std::string& name, const Dims& dims, float first, float step = 0) {
    node("Constant", {}, name);
    onnx::NodeProto& made = *graph().mutable_node(graph().node_size() - 1);
    onnx::TensorProto& tensor = *attribute(made, "value", onnx::AttributeProto::TENSOR)->mutable_t();
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : dims) tensor.add_dims(extent);
    for (std::int64_t i = 0, count = elements_of(dims); i < count; ++i)
      tensor.add_float_data(first + step * static_cast<float>(i));
    return name;
  }
  std::string number(const std::string& name, float value) {
    initialiser(name, {}, onnx::TensorProto::FLOAT)->add_float_data(value);
    return name;
  }
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
    onnx::TensorProto* tensor = initialiser(name, {std::ssize(values)}, onnx::TensorProto::INT64);
    for (const std::int64_t value : values) tensor->add_int64_data(value);
    return name;
  }
  onnx::TensorProto* initialiser(const std::string& name, const Dims& dims, std::int32_t type) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const std::int64_t extent : dims) tensor->add_dims(extent);
    return tensor;
  }

  // Adds a classifier: an average over the pixels of `image` and a linear layer with 3 outputs. The
  // result is the model's output "y".
  void classify(const std::string& image, std::int64_t channels) {
    node("GlobalAveragePool", {image}, "pooled");
    node("Flatten", {"pooled"}, "flat");
    node("Gemm", {"flat", weight("fc.weight", {3, channels}), weight("fc.bias", {3})}, "y",
         {.integers = {{"transB", 1}}});
  }

  FileGraph parse(const std::filesystem::path& folder = {}) const {
    const std::string bytes = model_.SerializeAsString();
    return parse_onnx({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "net.onnx",
                      folder);
  }
  // Reads the model as a network, with the image size and the number of classes of the model
  // itself.
  Network network() const {
    const ModelFile file(parse());
    const Shape image = file.image();
    return file.network({2, image[0], image[1], image[2]}, file.classes());
  }
  // Returns the error message if the model is refused, or else an empty text.
  std::string error() const {
    try {
      network();
      return {};
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

 private:
  static onnx::AttributeProto* attribute(onnx::NodeProto& node, const std::string& name,
                                         onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  }

  onnx::ModelProto model_;
};

// Returns the kinds of the layers between the images and the pool of classify(), for example
// "conv2d relu".
inline std::string kinds(const Network& network) {
  std::string text;
  for (std::size_t i = 1; i < network.layers().size(); ++i)
    text += (i > 1 ? " " : "") +
            std::string(std::visit([](const auto& op) { return op.kKind; }, network.layers()[i].op));
  return text;
}

}  // namespace convoy::app::onnx_import
