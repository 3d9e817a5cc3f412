// Makes a network of a file's nodes, one after the other. The files of this folder that import an
// operation use this class.
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
  std::optional<kernels::PadProblem> pad = std::nullopt;  // not done yet: the reader may do it itself

  Dims dims() const;  // as the file sees it; a pad that is not done must not exist
};

class Importer {
 public:
  explicit Importer(const FileGraph& graph);
  // Throws std::runtime_error that names the node.
  Network run();
  const std::vector<std::string>& notes() const { return notes_; }

  // Return an input of a node. All fail if it is absent or of the other kind.
  const Constant& constant(const FileNode& node, std::size_t index) const;
  const Constant* optional_constant(const FileNode& node, std::size_t index) const;  // null if absent
  bool is_constant(const FileNode& node, std::size_t index) const;
  // Settles what is pending: pads and shuffled channels become layers.
  const Value& activation(const FileNode& node, std::size_t index);
  // Returns what activation() returns. Throws unless it is [N, C, H, W] in this order.
  LayerId image(const FileNode& node, std::size_t index);
  // As image(), but leaves a pad to the caller.
  Value unpadded_image(const FileNode& node, std::size_t index);
  Dims shape(LayerId layer) const;

  // Appends a layer that reads these. Its name comes from that of the weight, if it has one, or of
  // the node.
  LayerId add(const FileNode& node, LayerOp op, std::vector<LayerId> inputs,
              const Constant* weight = nullptr);
  // Gives a layer's parameter or state the name and values of a constant with as many elements.
  void bind(const FileNode& node, LayerId layer, std::string_view key, const Constant& values);
  // Says what the node's output is: the layer as it is, or as `view` shows it.
  void give(const FileNode& node, LayerId layer, std::size_t output = 0);
  void give(const FileNode& node, Value value, std::size_t output = 0);
  // Appends a layer of one input that keeps its shape, and gives its output in the input's
  // arrangement.
  LayerId give_elementwise(const FileNode& node, LayerOp op, const Constant* weight = nullptr);

  // Returns the only node that reads a value and not its shape alone; null if there are more or if
  // it is an output of the file.
  const FileNode* only_reader(const std::string& value) const;
  bool is_read(const std::string& value) const;
  // Returns the vector that the node's only reader adds to its output, one value for each of so
  // many channels at the place of the value's axis; that reader is then done. Null if there is
  // none.
  const Constant* take_bias(const FileNode& node, int place, int rank, std::int64_t channels);
  // Whether nothing but a change of shape is between the node and the file's output.
  bool is_last(const FileNode& node) const;
  // As give(), also for the reader that take_bias() did.
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
  std::map<std::string, std::string> claimed_;          // parameters, and the nodes that have them
  std::map<const FileNode*, const FileNode*> bias_of_;  // nodes that take_bias() did, by the node before
  std::set<const FileNode*> done_;
  std::vector<std::string> notes_;
};

// Whether the constant has one value for each channel of a value of these dims, at the place of its
// axis of channels, or one for all.
bool is_per_channel(const Constant& constant, const Dims& dims, int place);

}  // namespace convoy::app::onnx_import
