// What a layer sees while it appends its nodes to a StepGraph.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/graph/step_graph.h"
#include "app/model/layer.h"

namespace convoy::app {

struct GraphOptions {
  bool training = true;  // false: no backward, running statistics, no dropout
  bool synchronised_batch_norm = true;
  int ranks = 1;  // with one rank there is nothing to reduce
  float label_smoothing = 0;
  bool tf32 = false;    // products of float32 tensors may round their factors
  bool mixing = false;  // in training, samples and their losses are mixed as the step's MixParameters say
};

class Emitter {
 public:
  Emitter(StepGraph& graph, const GraphOptions& options) : graph_(graph), options_(options) {}

  const GraphOptions& options() const { return options_; }
  TensorId input(int index = 0) const { return inputs_[static_cast<std::size_t>(index)]; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  TensorId output() const { return output_; }
  const Shape& shape(TensorId tensor) const { return graph_.tensors[static_cast<std::size_t>(tensor)].shape; }
  TensorId parameter(std::string_view name) const { return find(name).tensor; }
  TensorId parameter_gradient(std::string_view name) const { return find(name).gradient; }
  TensorId state(std::string_view name) const;
  std::uint32_t layer_key() const;  // from its name: tells dropout layers apart, whatever fusion did

  // A tensor that lives within the step. `partner` is the activation that it is a gradient of.
  TensorId new_tensor(std::string_view suffix, const Shape& shape, kernels::DType dtype = kernels::DType::f32,
                      TensorId partner = -1);
  void save(std::string_view key, TensorId tensor) { saved_[layer_ + "/" + std::string(key)] = tensor; }
  TensorId saved(std::string_view key) const { return saved_.at(layer_ + "/" + std::string(key)); }

  void node(std::string kind, std::vector<TensorId> inputs, std::vector<TensorId> outputs, KernelMaker make,
            double flops = 0);
  void allow_again(KernelMaker make);       // the last node may run a second time
  void allow_statistics(KernelMaker make);  // the last node can give batch norm's sums over its output too
  void allow_relu_gradient(
      KernelMaker make);  // the last node can give the gradient before a ReLU, reading its output too
  void allow_relu_mask(KernelMaker make);  // the last node can write, or read, a mask of the layer's ReLU
  // The last node can do the backward_reduce of the batch norm that gave its layer's input; it is one.
  void allow_input_norm(std::function<KernelMaker(const kernels::BatchNormProblem&)> maker);
  void allow_in_convolution(const kernels::BatchNormProblem& norm);
  void all_reduce(TensorId tensor);  // nothing with one rank

  // Backward. The gradient of a tensor is the sum of what its consumers contributed.
  bool wants_gradient(int input_index) const { return input(input_index) != graph_.images; }
  TensorId output_gradient();                           // one tensor; an add node sums several contributions
  std::vector<TensorId> output_gradients(int at_most);  // up to so many, for kernels that sum them themselves
  TensorId new_input_gradient(int input_index);         // a new tensor, already contributed
  void contribute(int input_index, TensorId gradient);  // an existing one
  // The last contribution so far, for a kernel that adds it to its own; -1 where there is none.
  TensorId take_contribution(int input_index);

 private:
  friend class GraphBuilder;
  const TrainableParameter& find(std::string_view name) const;

  StepGraph& graph_;
  GraphOptions options_;
  Phase phase_ = Phase::forward;
  std::string layer_;
  std::vector<TensorId> inputs_;
  TensorId output_ = -1;
  std::map<std::string, TensorId> saved_;
  std::map<TensorId, std::vector<TensorId>> contributions_;
};

}  // namespace convoy::app
