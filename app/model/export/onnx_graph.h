// Builds the nodes and constants of an ONNX graph that is being written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/tensor.h"

namespace onnx {
class GraphProto;
class NodeProto;
class ValueInfoProto;
}  // namespace onnx

namespace convoy::app::onnx_export {

using Dims = std::vector<std::int64_t>;

class OnnxNode {
 public:
  explicit OnnxNode(onnx::NodeProto& node) : node_(node) {}
  OnnxNode& set(const char* attribute, std::int64_t value);
  OnnxNode& set(const char* attribute, float value);
  OnnxNode& set(const char* attribute, const Dims& values);

 private:
  onnx::NodeProto& node_;
};

class OnnxGraph {
 public:
  explicit OnnxGraph(onnx::GraphProto& graph) : graph_(graph) {}

  // Appends a node, which gets the name of its output. An empty string in `inputs` means that an
  // optional input is absent.
  OnnxNode node(const char* op, const std::vector<std::string>& inputs, const std::string& output);
  // constant() and scalar() add an initialiser to the graph and return its name.
  std::string constant(const std::string& name, const Dims& dims, std::span<const float> values);
  std::string constant(const std::string& name, const Dims& integers);
  // Appends a Constant node, whose values no program trains, and returns the name of its output.
  std::string constant_node(const std::string& name, const Dims& dims, std::span<const float> values);
  std::string scalar(const std::string& name, float value) { return constant(name, {}, {&value, 1}); }
  // Declares an input or output of the graph. The first extent is the batch size, which is left
  // variable.
  static void declare(onnx::ValueInfoProto& value, const std::string& name, const kernels::Shape& shape);

 private:
  onnx::GraphProto& graph_;
};

}  // namespace convoy::app::onnx_export
