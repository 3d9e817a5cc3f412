// Writes the layers of a network as ONNX nodes. Used only in app/model/export.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/model/export/onnx_graph.h"
#include "app/model/network.h"

namespace convoy::app::onnx_export {

class LayerWriter {
 public:
  LayerWriter(onnx::GraphProto& graph, const Network& network, bool fold_batch_norm);

  // Writes all layers, then the input and the outputs of the graph. Returns the number of elements
  // in all parameters of the graph, without running statistics.
  std::int64_t write();
  // Returns the number of batch norms that are folded into convolutions.
  std::int64_t folded() const { return std::ssize(norm_of_); }

 private:
  // Each overload writes one type of layer. A missing overload is a compile error.
  void write(const Input&);
  void write(const Conv2d&);
  void write(const BatchNorm&);
  void write(const LayerNorm&);
  void write(const GroupNorm&);
  void write(const Relu&);
  void write(const Activation&);
  void write(const Prelu&);
  void write(const Add&);
  void write(const Multiply&);
  void write(const Scale&);
  void write(const Bias&);
  void write(const Concat&);
  void write(const Slice&);
  void write(const ChannelShuffle&);
  void write(const Pad&);
  void write(const Pool&);
  void write(const Flatten&);
  void write(const Softmax&);
  void write(const LocalResponseNorm&);
  void write(const Dropout&);
  void write(const Linear&);

  void find_folded();
  void write_gelu(bool tanh);
  void write_convolution(const Conv2d& conv, const std::vector<std::string>& inputs);
  // Returns the padding {height, width} at the end of a pool's input. Sets `ceil_mode` to the
  // attribute that the ONNX node needs.
  std::array<std::int64_t, 2> end_padding(const Pool& pool, bool& ceil_mode) const;

  const Layer& layer(LayerId id) const { return network_.layers()[static_cast<std::size_t>(id)]; }
  const Layer& layer() const { return layer(id_); }
  const Shape& shape(int input = 0) const { return network_.shape(layer().inputs[input]); }
  std::string input(int index = 0) const;
  std::vector<std::string> inputs() const;
  const std::string& output() const { return value_.back(); }
  // Returns a name for a value or constant inside the layer.
  std::string part(const char* name) const { return layer().name + "/" + name; }
  const ParameterSpec& spec(std::string_view key) const;
  // Writes a parameter as an initialiser and returns its name. `dims` is the shape in the file; if
  // it is empty, the parameter keeps its shape.
  std::string parameter(std::string_view key, Dims dims = {});
  // Returns the shape in which a parameter of `count` channels is broadcast over this layer's
  // input.
  Dims over_channels(std::int64_t count) const;

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
