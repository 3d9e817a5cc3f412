// A network is a list of layers. Each layer reads the outputs of earlier layers. A network is built
// for one input shape, so the shapes of a layer are known and checked when it is added.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/model/op_table.h"

namespace convoy::app {

using LayerId = int;  // index of a layer; 0 is the network's input

struct Layer {
  std::string name;
  LayerOp op;
  std::vector<LayerId> inputs;
  Shape output;
  // The parameters and states of the operation, in the order in which it declares them. Their names
  // are "layer.key".
  std::vector<ParameterSpec> parameters, states;
};

class Network {
 public:
  // `input` is [N, C, H, W]. N is the number of samples that one rank processes at once.
  Network(std::string name, const Shape& input);

  LayerId input() const { return 0; }
  // Adds a layer, infers its shape and returns its id. Throws std::runtime_error that names network
  // and layer.
  LayerId add(std::string name, LayerOp op, std::vector<LayerId> inputs);
  LayerId add(std::string name, LayerOp op, LayerId input) {
    return add(std::move(name), std::move(op), std::vector{input});
  }

  // Appends a layer of another network. Its parameters are kept; only the shape of its output is
  // inferred again.
  LayerId append(Layer layer);

  // Returns the layers that give logits: the argument of the last set_outputs(), or the last layer
  // if there was no such call. The first is the main output, which evaluation reads. The others are
  // auxiliary classifiers.
  std::vector<LayerId> outputs() const;
  void set_outputs(std::vector<LayerId> layers) { outputs_ = std::move(layers); }

  const std::string& name() const { return name_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const Shape& shape(LayerId layer) const { return layers_[static_cast<std::size_t>(layer)].output; }
  std::vector<Shape> input_shapes(const Layer& layer) const;
  // Returns the parameters of all layers in order.
  std::vector<ParameterSpec> parameters() const;
  std::int64_t parameter_count() const;
  // Returns a layer's parameter or state, so that the caller can change its name or initial values.
  // Throws std::logic_error if the layer has none with that key.
  ParameterSpec& parameter(LayerId layer, std::string_view key);

  // Adds a message for the user, for example that a layer gets new initial values.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& notes() const { return notes_; }
  // Stores a text that describes the structure of the network in a model file. The text is empty
  // for networks of the zoo.
  void set_file_structure(std::string text) { file_structure_ = std::move(text); }
  const std::string& file_structure() const { return file_structure_; }
  // Removes the initial values that were read from a model file, except those of constants. The
  // initializers then draw new ones.
  void reinitialise();

 private:
  LayerId append(Layer layer, bool declare);

  std::string name_;
  std::vector<Layer> layers_;
  std::vector<LayerId> outputs_;
  std::vector<std::string> notes_;
  std::string file_structure_;
};

// Returns one flag per layer: whether one of `outputs` depends on the layer.
std::vector<bool> layers_needed_for(const Network& network, const std::vector<LayerId>& outputs);

// Returns the network without the layers on which no output depends.
Network without_unused(const Network& network);

// Returns a network with the same results and fewer passes over memory. A ReLU moves into the
// convolution, batch norm or max pool next to it. Another activation moves into the batch norm
// before it. Batch norm, add and ReLU become one layer. Parameters keep their names.
Network fuse(const Network& network);

}  // namespace convoy::app
