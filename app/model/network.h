// A network is a list of layers, each reading the outputs of earlier ones. It is built for one
// input shape, so every shape is known and checked when a layer is added.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/model/op_table.h"

namespace convoy::app {

using LayerId = int;  // the network's input is layer 0

struct Layer {
  std::string name;
  LayerOp op;
  std::vector<LayerId> inputs;
  Shape output;
  // Those that the operation declares, in its order. Their names are "layer.key".
  std::vector<ParameterSpec> parameters, states;
};

class Network {
 public:
  // `input` is [N, C, H, W]; N is the number of samples that one rank processes at once.
  Network(std::string name, const Shape& input);

  LayerId input() const { return 0; }
  // Infers the layer's shape and returns its id. Throws std::runtime_error, which names network and
  // layer.
  LayerId add(std::string name, LayerOp op, std::vector<LayerId> inputs);
  LayerId add(std::string name, LayerOp op, LayerId input) {
    return add(std::move(name), std::move(op), std::vector{input});
  }

  // Appends a layer of another network with its parameters. Only its output's shape is inferred.
  LayerId append(Layer layer);

  // The layers that give logits: those of the last set_outputs(), else the last layer. The first
  // one is the main output, which evaluation reads; the others are auxiliary classifiers.
  std::vector<LayerId> outputs() const;
  void set_outputs(std::vector<LayerId> layers) { outputs_ = std::move(layers); }

  const std::string& name() const { return name_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const Shape& shape(LayerId layer) const { return layers_[static_cast<std::size_t>(layer)].output; }
  std::vector<Shape> input_shapes(const Layer& layer) const;
  // Returns those of all layers in order.
  std::vector<ParameterSpec> parameters() const;
  std::int64_t parameter_count() const;
  // Returns a layer's parameter or state, to give it another name or first values. Throws
  // std::logic_error if the layer has none of that key.
  ParameterSpec& parameter(LayerId layer, std::string_view key);

  // Tells the user something about the network, for example that a layer is drawn anew.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& notes() const { return notes_; }
  // The structure of the network of a model file, as text; empty for networks of the zoo.
  void set_file_structure(std::string text) { file_structure_ = std::move(text); }
  const std::string& file_structure() const { return file_structure_; }
  // Forgets the first values of a model file: the initializers draw them.
  void reinitialise();

 private:
  LayerId append(Layer layer, bool declare);

  std::string name_;
  std::vector<Layer> layers_;
  std::vector<LayerId> outputs_;
  std::vector<std::string> notes_;
  std::string file_structure_;
};

// Returns for each layer whether one of `outputs` depends on it.
std::vector<bool> layers_behind(const Network& network, const std::vector<LayerId>& outputs);

// Returns an equal network without the layers on which no output depends.
Network without_unused(const Network& network);

// Returns an equal network with fewer passes over memory. A ReLU moves into the convolution, batch
// norm or max pool next to it, another activation into a batch norm, and batch norm, add and ReLU
// become one layer. Parameters keep their names.
Network fuse(const Network& network);

}  // namespace convoy::app
