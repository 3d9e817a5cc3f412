// Writes the layers of a network as ONNX nodes. Each layer writes its own (app/graph/ops).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/model/export/onnx_graph.h"
#include "app/model/network.h"

namespace convoy::app::onnx_export {

Dims dims_of(const Shape& shape);

class LayerWriter {
 public:
  LayerWriter(onnx::GraphProto& graph, const Network& network, bool fold_batch_norm);

  // Writes all layers, then the input and the outputs of the graph. Returns the number of elements
  // in all parameters of the graph, without running statistics.
  std::int64_t write();
  // Returns the number of batch norms that are folded into convolutions.
  std::int64_t folded() const { return std::ssize(norm_of_); }

  // The functions below are for the write() of the layer that this writer has reached.
  OnnxGraph& graph() { return graph_; }
  // Appends a node that computes the layer's output.
  OnnxNode node(const char* op, const std::vector<std::string>& inputs) {
    return graph_.node(op, inputs, output());
  }
  const Layer& layer() const { return layer(id_); }
  // Returns the shape of an input.
  const Shape& shape(int input = 0) const { return network_.shape(layer().inputs[input]); }
  // Return the names of the values that the layer reads and writes.
  std::string input(int index = 0) const;
  std::vector<std::string> inputs() const;
  const std::string& output() const { return value_.back(); }
  // Gives the layer's output the name of its input, so that no node is needed.
  void pass_input() { value_.back() = input(); }
  // Returns a name for a value or constant inside the layer.
  std::string part(const char* name) const { return layer().name + "/" + name; }
  // Writes a parameter as an initialiser and returns its name. `dims` is the shape in the file; if
  // it is empty, the parameter keeps its shape.
  std::string parameter(std::string_view key, Dims dims = {});
  // Returns the shape in which a parameter of `count` channels is broadcast over this layer's
  // input.
  Dims over_channels(std::int64_t count) const;
  // Writes the parameters of a convolution and returns the inputs of its node. If a batch norm is
  // folded into the convolution, the parameters include it.
  std::vector<std::string> convolution_operands(bool has_bias);
  // Returns whether the layer is a batch norm that is folded into the convolution before it.
  bool is_folded() const { return norm_of_.contains(layer().inputs[0]); }

 private:
  void find_folded();
  const Layer& layer(LayerId id) const { return network_.layers()[static_cast<std::size_t>(id)]; }

  OnnxGraph graph_;
  onnx::GraphProto& proto_;
  const Network& network_;
  const bool fold_;
  // Maps each convolution to the batch norm that is folded into it.
  std::map<LayerId, LayerId> norm_of_;
  LayerId id_ = 0;
  std::vector<std::string> value_;  // the name of each layer's output
  std::int64_t parameters_ = 0;     // elements of the parameters written so far
};

}  // namespace convoy::app::onnx_export
