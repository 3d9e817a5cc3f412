// The interface through which a layer appends its nodes to a StepGraph (app/graph/ops).
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

struct GraphOptions {
  bool training = true;  // false: no backward, running statistics, no dropout
  bool synchronised_batch_norm = true;
  int ranks = 1;        // with one rank there is nothing to reduce
  bool tf32 = false;    // products of float32 tensors may round their factors
  bool mixing = false;  // training mixes samples and their losses as MixParameters say
  // Training: the loss is a sum over the network's outputs with these weights. Empty: the first
  // output alone.
  std::vector<float> loss_weights = {};
  bool keep_probabilities = false;  // of the first output, to the end of the step
};

class Emitter {
 public:
  Emitter(StepGraph& graph, const GraphOptions& options) : graph_(graph), options_(options) {}

  const GraphOptions& options() const { return options_; }
  const std::vector<TensorId>& inputs() const { return inputs_; }
  TensorId input(int index = 0) const { return inputs_[index]; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  TensorId output() const { return output_; }
  const Shape& shape(TensorId tensor) const { return graph_.tensors[tensor].shape; }
  // The layer's parameters and states, by their keys.
  TensorId parameter(std::string_view key) const { return find(key).tensor; }
  // Returns whether one of these parameters is trained. If none is, the layer need not compute
  // their gradients.
  bool trains(std::initializer_list<std::string_view> keys) const;
  // Returns the tensor for a parameter's gradient. If the parameter is frozen but the kernel gives
  // its gradient along with others, that is a tensor of the step, which nobody reads.
  TensorId parameter_gradient(std::string_view key);
  TensorId state(std::string_view key) const;
  // Returns a hash of the layer's name. It tells dropout layers apart, whatever fuse() did.
  std::uint32_t layer_key() const;

  // Adds a tensor that lives within the step. `partner`: the activation that it is a gradient of.
  TensorId new_tensor(std::string_view suffix, const Shape& shape, kernels::DType dtype = kernels::DType::f32,
                      TensorId partner = -1);
  // Adds one that is f32 in every precision.
  TensorId new_full_precision(std::string_view suffix, const Shape& shape);
  // Keeps a tensor of forward under a key of the layer, for its backward.
  void save(std::string_view key, TensorId tensor) { saved_[layer_ + "/" + std::string(key)] = tensor; }
  TensorId saved(std::string_view key) const { return saved_.at(layer_ + "/" + std::string(key)); }

  // Appends a node of the layer.
  void append(NodeOp op, std::vector<TensorId> inputs, std::vector<TensorId> outputs, double flops = 0);
  // Appends the sum of a tensor over the ranks; nothing if there is one rank.
  void all_reduce(TensorId tensor);

  // In backward, the gradient of a tensor is the sum of what its readers contributed. Only tensors
  // that depend on a trained parameter want one.
  bool wants_gradient(int input_index) const { return differentiable_.contains(input(input_index)); }
  // Returns the gradient as one tensor. If there are several contributions, it appends their sum.
  TensorId output_gradient();
  // Returns the gradient in at most so many parts, for kernels that add these themselves.
  std::vector<TensorId> output_gradients(int at_most);
  // Adds a tensor, and contributes it to the gradient of an input.
  TensorId new_input_gradient(int input_index);
  // Contributes a tensor that exists.
  void contribute(int input_index, TensorId gradient);
  // Takes back the last contribution, for a kernel that adds it to its own; -1 if there is none.
  TensorId take_contribution(int input_index);

 private:
  friend class GraphBuilder;
  const TrainableParameter& find(std::string_view key) const;

  StepGraph& graph_;
  GraphOptions options_;
  Phase phase_ = Phase::forward;
  std::string layer_;
  // The layer's own in StepGraph::parameters and StepGraph::states.
  std::span<const TrainableParameter> parameters_;
  std::span<const std::pair<TensorId, ParameterSpec>> states_;
  std::vector<TensorId> inputs_;
  TensorId output_ = -1;
  std::set<TensorId> differentiable_;  // outputs of layers that depend on a trained parameter
  std::map<std::string, TensorId> saved_;
  std::map<TensorId, std::vector<TensorId>> contributions_;
};

}  // namespace convoy::app
