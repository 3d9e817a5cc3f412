// Builds a network from the nodes of an ONNX file, one after the other. The functions that import
// single operations (operations.h) use this class.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/model/import/arrangement.h"
#include "app/model/import/onnx_file.h"
#include "app/model/network.h"

namespace convoy::app::onnx_import {

// A value of the file: a constant, or the output of a layer.
struct Value {
  std::optional<Constant> constant;
  LayerId layer = 0;
  Arrangement view;
  // A pad that is not a layer yet, because the convolution or pool that reads the value may be able
  // to apply it.
  std::optional<kernels::PadProblem> pad = std::nullopt;

  // Returns the shape that the value has in the file. Must not be called while `pad` is set.
  Dims dims() const;
};

class Importer {
 public:
  explicit Importer(const FileGraph& graph);
  // Imports all nodes. Throws std::runtime_error that names the node.
  Network run();
  const std::vector<std::string>& notes() const { return notes_; }

  // Returns an input of a node. Fails if the input is absent or not a constant.
  const Constant& constant(const FileNode& node, std::size_t index) const;
  // Does the same as constant(), but returns null if the input is absent.
  const Constant* optional_constant(const FileNode& node, std::size_t index) const;
  bool is_constant(const FileNode& node, std::size_t index) const;
  // Returns an input that is the output of a layer. If a pad or a channel shuffle of this input was
  // postponed, it becomes a layer first. Fails if the input is absent or a constant.
  const Value& activation(const FileNode& node, std::size_t index);
  // Returns the layer of an input that is an image [N, C, H, W] in this order. If a pad or a
  // channel shuffle of this input was postponed, it becomes a layer first. Fails for any other
  // input.
  LayerId image(const FileNode& node, std::size_t index);
  // Does the same as image(), but a postponed pad does not become a layer. The pad is returned in
  // Value::pad.
  Value unpadded_image(const FileNode& node, std::size_t index);
  Dims shape(LayerId layer) const;
  // Returns the layers that were imported so far.
  const std::vector<Layer>& layers() const { return network_->layers(); }

  // Appends a layer that reads the layers `inputs`. The layer is named after `weight` if that has a
  // name, else after the node.
  LayerId add(const FileNode& node, LayerOp op, std::vector<LayerId> inputs,
              const Constant* weight = nullptr);
  // Gives a layer's parameter or state the name and the values of a constant. Both must have the
  // same number of elements, and the values must be finite.
  void bind(const FileNode& node, LayerId layer, std::string_view key, const Constant& values);
  // Gives a layer's parameter one number for all channels, which is not trained.
  void keep(LayerId layer, std::string_view key, double number);
  // Records the value of a node's output for the nodes that read it. The first overload records the
  // unchanged output of a layer, the second any value.
  void give(const FileNode& node, LayerId layer, std::size_t output = 0);
  void give(const FileNode& node, Value value, std::size_t output = 0);
  // Appends an elementwise layer that reads the node's first input. Records the layer's output, in
  // the arrangement of the input, as the output of the node.
  LayerId give_elementwise(const FileNode& node, LayerOp op, const Constant* weight = nullptr);

  // Returns the only node that reads a value, or null if several nodes read it or if it is an
  // output of the file. Shape nodes do not count as readers.
  const FileNode* only_reader(const std::string& value) const;
  bool is_read(const std::string& value) const;
  // Looks for a bias: a constant with one value per channel on axis `place`, which an Add node
  // adds. The Add must be the only reader of the node's output. Returns the constant and marks the
  // Add as imported, or returns null.
  const Constant* take_bias(const FileNode& node, int place, int rank, std::int64_t channels);
  // Returns whether only nodes that change the shape come between the node and an output of the
  // file.
  bool is_last(const FileNode& node) const;
  // Records `value` as the output of the node, and also as the output of the Add whose bias
  // take_bias() returned.
  void give_with_bias(const FileNode& node, Value value);
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const FileGraph& graph() const { return graph_; }

 private:
  void find_readers();
  void read_input();
  void import_node(const FileNode& node);
  bool try_constant(const FileNode& node);
  LayerId output_layer(const std::string& name);
  bool is_output(const std::string& value) const;
  void require_own_names() const;
  std::string layer_name(const FileNode& node, const Constant* weight) const;
  const Value& value(const FileNode& node, std::size_t index) const;
  Value& settle(const FileNode& node, std::size_t index);

  const FileGraph& graph_;
  std::optional<Network> network_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::vector<const FileNode*>> readers_;
  std::set<std::string> layer_names_;
  // Maps the name of a parameter to the label of the node that uses it. A second use is an error.
  std::map<std::string, std::string> claimed_;
  // Maps a node to the Add after it whose bias take_bias() returned.
  std::map<const FileNode*, const FileNode*> bias_of_;
  std::set<const FileNode*> done_;
  std::vector<std::string> notes_;
};

// Returns whether the constant has one value for all channels, or one value per channel on axis
// `place` of a value with the shape `dims`.
bool is_per_channel(const Constant& constant, const Dims& dims, int place);
// Returns whether the constant is one number that an exporter has computed, and not a weight with
// one value. Exporters give such numbers no name, or one with '/' or ':', which weights do not
// have.
bool is_computed_number(const Constant& constant);

}  // namespace convoy::app::onnx_import
