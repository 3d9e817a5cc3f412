#include "app/graph/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::app {

using kernels::DType;

class GraphBuilder {
 public:
  GraphBuilder(const Network& network, const GraphOptions& options)
      : network_(network),
        options_(options),
        emitter_(graph_, options),
        used_(weighted() ? network.outputs() : std::vector{network.outputs()[0]}),
        needed_(layers_needed_for(network, used_)) {}

  StepGraph build() {
    declare_tensors();
    for (std::size_t i = 0; i < network_.layers().size(); ++i) {
      if (!needed_[i]) continue;
      enter(i, Phase::forward);
      std::visit([&](const auto& op) { op.forward(emitter_); }, network_.layers()[i].op);
    }
    emit_losses();
    if (options_.training)
      for (std::size_t i = network_.layers().size(); i-- > 0;) {
        if (!needed_[i]) continue;
        enter(i, Phase::backward);
        if (!emitter_.differentiable_.contains(outputs_[i])) continue;
        std::visit([&](const auto& op) { op.backward(emitter_); }, network_.layers()[i].op);
      }
    if (mixes()) mix_images();
    return std::move(graph_);
  }

 private:
  bool weighted() const { return options_.training && !options_.loss_weights.empty(); }
  bool mixes() const { return options_.training && options_.mixing; }

  TensorId add_tensor(Tensor tensor) {
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }

  void declare_tensors() {
    const auto& layers = network_.layers();
    for (const LayerId output : used_) {
      const Layer& layer = layers[static_cast<std::size_t>(output)];
      if (layer.output.rank() != 2)
        throw std::runtime_error(
            fmt::format("network {}: its output {} gives {}, expected logits [N, classes]", network_.name(),
                        layer.name, layer.output.to_string()));
    }
    for (const Layer& layer : layers) {
      const bool input = outputs_.empty();
      outputs_.push_back(add_tensor(
          {layer.name, input ? TensorRole::images : TensorRole::activation, DType::f32, layer.output}));
      first_parameter_.push_back(graph_.parameters.size());
      first_state_.push_back(graph_.states.size());
      for (const ParameterSpec& spec : layer.parameters) {
        const TensorId tensor = add_tensor({spec.name, TensorRole::parameter, DType::f32, spec.shape});
        const TensorId gradient =
            options_.training && spec.trained()
                ? add_tensor({spec.name + ".gradient", TensorRole::gradient, DType::f32, spec.shape, tensor})
                : -1;
        graph_.parameters.push_back({tensor, gradient, spec});
        if (gradient >= 0) emitter_.differentiable_.insert(outputs_.back());
      }
      if (std::ranges::any_of(layer.inputs, [&](LayerId id) {
            return emitter_.differentiable_.contains(outputs_[static_cast<std::size_t>(id)]);
          }))
        emitter_.differentiable_.insert(outputs_.back());
      for (const ParameterSpec& spec : layer.states)
        graph_.states.push_back({add_tensor({spec.name, TensorRole::state, DType::f32, spec.shape}), spec});
    }
    graph_.images = outputs_.front();
    const std::int64_t samples = network_.shape(network_.input())[0];
    graph_.labels = add_tensor({"labels", TensorRole::labels, DType::i32, {samples}});
    graph_.metrics = add_tensor({"metrics", TensorRole::metrics, DType::f64, {4}});
    if (!mixes()) return;
    graph_.mix_of_images = add_tensor({"mix of images", TensorRole::mix, DType::i32, {kernels::kMixWords}});
    graph_.mix_of_labels = add_tensor({"mix of labels", TensorRole::mix, DType::i32, {kernels::kMixWords}});
  }

  void enter(std::size_t index, Phase phase) {
    const Layer& layer = network_.layers()[index];
    emitter_.phase_ = phase;
    emitter_.layer_ = layer.name;
    emitter_.inputs_.clear();
    for (const LayerId input : layer.inputs) emitter_.inputs_.push_back(outputs_[input]);
    emitter_.output_ = outputs_[index];
    const std::span parameters(graph_.parameters);
    emitter_.parameters_ = parameters.subspan(first_parameter_[index], layer.parameters.size());
    const std::span states(graph_.states);
    emitter_.states_ = states.subspan(first_state_[index], layer.states.size());
  }

  std::vector<TensorId> with_labels(TensorId first) const {
    std::vector<TensorId> inputs{first, graph_.labels};
    if (mixes()) inputs.push_back(graph_.mix_of_labels);
    return inputs;
  }

  // Appends the loss of each output and then the gradients of the logits. Each loss node reads the
  // metrics of the previous one and adds its own, so the last node writes the metrics of the step.
  void emit_losses() {
    std::vector<TensorId> probabilities;
    std::vector<kernels::LossProblem> problems;
    TensorId metrics = -1;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      emitter_.layer_ = i == 0 ? "loss" : fmt::format("loss{}", i + 1);
      const TensorId logits = outputs_[static_cast<std::size_t>(used_[i])];
      probabilities.push_back(emitter_.new_full_precision("probabilities", emitter_.shape(logits)));
      problems.push_back({weighted() ? options_.loss_weights[i] : 1, i > 0, !options_.training});
      std::vector<TensorId> inputs = with_labels(logits);
      if (i > 0) inputs.push_back(metrics);
      const bool last = i + 1 == used_.size();
      metrics = last ? graph_.metrics : emitter_.new_tensor("metrics", {kernels::kLossMetrics}, DType::f64);
      emitter_.append(SoftmaxCrossEntropyForward{problems[i]}, inputs, {probabilities[i], metrics});
    }
    if (options_.keep_probabilities) graph_.probabilities = probabilities[0];
    if (!options_.training) return;
    if (!emitter_.differentiable_.contains(outputs_[static_cast<std::size_t>(used_[0])]))
      throw std::runtime_error(fmt::format("network {}: no parameter is trained", network_.name()));
    emitter_.phase_ = Phase::backward;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const TensorId logits = outputs_[static_cast<std::size_t>(used_[i])];
      const TensorId gradient = emitter_.new_tensor("gradient", emitter_.shape(logits), DType::f32, logits);
      problems[i].auxiliary = false;
      emitter_.append(SoftmaxCrossEntropyBackward{problems[i]}, with_labels(probabilities[i]), {gradient});
      emitter_.contributions_[logits].push_back(gradient);
    }
  }

  // Inserts a node at the start that mixes the images, so that the first layer reads mixed images.
  void mix_images() {
    const TensorId mixed = graph_.images;
    graph_.tensors[mixed].role = TensorRole::activation;
    graph_.images = add_tensor({"images", TensorRole::images, DType::f32, network_.layers().front().output});
    Node node{"input", MixForward{}, Phase::forward, {graph_.images, graph_.mix_of_images}, {mixed}};
    graph_.nodes.insert(graph_.nodes.begin(), std::move(node));
  }

  const Network& network_;
  const GraphOptions options_;
  StepGraph graph_;
  Emitter emitter_;
  const std::vector<LayerId> used_;  // the outputs with a loss
  // For each layer: whether a loss depends on it.
  const std::vector<bool> needed_;
  std::vector<TensorId> outputs_;  // the output of each layer
  // For each layer: the indices of its first parameter and first state in StepGraph::parameters and
  // StepGraph::states.
  std::vector<std::size_t> first_parameter_, first_state_;
};

StepGraph build_step_graph(const Network& network, const GraphOptions& options) {
  return GraphBuilder(network, options).build();
}

}  // namespace convoy::app
