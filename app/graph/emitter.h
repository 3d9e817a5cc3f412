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
  // If false, the step has no backward and no dropout, and batch norms use running statistics.
  bool training = true;
  bool synchronised_batch_norm = true;
  // The number of ranks. With one rank the graph needs no sums over the ranks.
  int ranks = 1;
  // Whether products of float32 tensors may round their factors to tf32.
  bool tf32 = false;
  // Whether training mixes pairs of samples and their losses, as MixParameters say.
  bool mixing = false;
  // Training: one weight per output of the network. The loss is the weighted sum of the outputs'
  // losses. If there are no weights, only the first output has a loss.
  std::vector<float> loss_weights = {};
  // Whether the probabilities of the first output stay in memory to the end of the step.
  bool keep_probabilities = false;
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
  // Returns the layer's parameter with this key.
  TensorId parameter(std::string_view key) const { return find(key).tensor; }
  // Returns whether at least one of these parameters is trained. Otherwise the layer need not
  // compute their gradients.
  bool trains(std::initializer_list<std::string_view> keys) const;
  // Returns whether all of these parameters are frozen. Constants of the network have no gradients,
  // but are frozen only if a flag says so.
  bool frozen(std::initializer_list<std::string_view> keys) const;
  // Returns the tensor for a parameter's gradient. If the parameter has none but the kernel writes
  // its gradient anyway, this is a temporary tensor that no node reads.
  TensorId parameter_gradient(std::string_view key);
  TensorId state(std::string_view key) const;
  // Returns a hash of the layer's name. It makes each dropout layer draw its own random numbers.
  // These are the same whether or not fuse() (app/model) has merged layers.
  std::uint32_t layer_key() const;

  // Adds a tensor that lives within the step. For a gradient, `same_layout_as` is the activation
  // that it is the gradient of.
  TensorId new_tensor(std::string_view suffix, const Shape& shape, kernels::DType dtype = kernels::DType::f32,
                      TensorId same_layout_as = -1);
  // Adds a tensor that is f32 in every precision.
  TensorId new_full_precision(std::string_view suffix, const Shape& shape);
  // Stores a tensor of forward under a key of the layer, so that the layer's backward can find it.
  void save(std::string_view key, TensorId tensor) { saved_[layer_ + "/" + std::string(key)] = tensor; }
  TensorId saved(std::string_view key) const { return saved_.at(layer_ + "/" + std::string(key)); }

  // Appends a node of the layer.
  void append(NodeOp op, std::vector<TensorId> inputs, std::vector<TensorId> outputs, double flops = 0);
  // Appends the sum of a tensor over the ranks. Does nothing if there is one rank.
  void all_reduce(TensorId tensor);

  // Returns whether an input needs a gradient, because it depends on a trained parameter.
  //
  // In backward every layer that reads a tensor contributes one term to the gradient of the tensor.
  // The gradient is the sum of these contributions, which the next functions collect.
  bool wants_gradient(int input_index) const { return differentiable_.contains(input(input_index)); }
  // Returns the gradient of the output as one tensor. If there are several contributions, appends
  // their sum.
  TensorId output_gradient();
  // Returns the gradient of the output as at most `at_most` contributions, for a kernel that adds
  // them itself.
  std::vector<TensorId> output_gradients(int at_most);
  // Adds a tensor and contributes it to the gradient of an input.
  TensorId new_input_gradient(int input_index);
  // Contributes an existing tensor to the gradient of an input.
  void contribute(int input_index, TensorId gradient);
  // Removes the last contribution to the gradient of an input and returns it, so that a kernel can
  // add it to its own contribution and save a pass. Returns -1 if there is none.
  TensorId take_contribution(int input_index);

 private:
  friend class GraphBuilder;
  const GraphParameter& find(std::string_view key) const;

  StepGraph& graph_;
  GraphOptions options_;
  Phase phase_ = Phase::forward;
  std::string layer_;
  // The layer's elements of StepGraph::parameters and StepGraph::states.
  std::span<const GraphParameter> parameters_;
  std::span<const StateTensor> states_;
  std::vector<TensorId> inputs_;
  TensorId output_ = -1;
  // Outputs of layers that depend on a trained parameter.
  std::set<TensorId> differentiable_;
  std::map<std::string, TensorId> saved_;
  std::map<TensorId, std::vector<TensorId>> contributions_;
};

}  // namespace convoy::app
