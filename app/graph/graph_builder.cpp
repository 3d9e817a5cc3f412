#include "app/graph/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/mix/mix.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace convoy::app {

using kernels::Backend;
using kernels::DType;
using kernels::KernelRequest;

class GraphBuilder {
 public:
  GraphBuilder(const Network& network, const GraphOptions& options)
      : network_(network), options_(options), emitter_(graph_, options) {}

  StepGraph build() {
    declare_tensors();
    for (std::size_t i = 0; i < network_.layers().size(); ++i) {
      enter(i, Phase::forward);
      std::visit([&](const auto& op) { op.forward(emitter_); }, network_.layers()[i].op);
    }
    emit_loss();
    if (options_.training)
      for (std::size_t i = network_.layers().size(); i-- > 0;) {
        enter(i, Phase::backward);
        std::visit([&](const auto& op) { op.backward(emitter_); }, network_.layers()[i].op);
      }
    if (mixes()) mix_images();
    return std::move(graph_);
  }

 private:
  bool mixes() const { return options_.training && options_.mixing; }

  TensorId add_tensor(Tensor tensor) {
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }

  void declare_tensors() {
    const auto& layers = network_.layers();
    const Shape& logits = layers.back().output;
    if (logits.rank() != 2)
      throw std::runtime_error(
          fmt::format("network {}: its last layer {} gives {}, expected logits [N, classes]", network_.name(),
                      layers.back().name, logits.to_string()));
    for (const Layer& layer : layers) {
      const bool input = outputs_.empty();
      outputs_.push_back(add_tensor(
          {layer.name, input ? TensorRole::images : TensorRole::activation, DType::f32, layer.output}));
      const auto shapes = network_.input_shapes(layer);
      for (auto spec : std::visit([&](const auto& op) { return op.parameters(shapes); }, layer.op)) {
        spec.name = layer.name + "." + spec.name;
        const TensorId tensor = add_tensor({spec.name, TensorRole::parameter, DType::f32, spec.shape});
        const TensorId gradient =
            options_.training
                ? add_tensor({spec.name + ".gradient", TensorRole::gradient, DType::f32, spec.shape, tensor})
                : -1;
        graph_.parameters.push_back({tensor, gradient, std::move(spec)});
      }
      for (auto spec : std::visit([&](const auto& op) { return op.states(shapes); }, layer.op)) {
        spec.name = layer.name + "." + spec.name;
        graph_.states.emplace_back(add_tensor({spec.name, TensorRole::state, DType::f32, spec.shape}), spec);
      }
    }
    graph_.images = outputs_.front();
    graph_.logits = outputs_.back();
    graph_.labels = add_tensor({"labels", TensorRole::labels, DType::i32, {logits[0]}});
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
    for (const LayerId input : layer.inputs)
      emitter_.inputs_.push_back(outputs_[static_cast<std::size_t>(input)]);
    emitter_.output_ = outputs_[index];
  }

  void emit_loss() {
    const kernels::LossProblem problem{options_.label_smoothing};
    emitter_.layer_ = "loss";
    const Shape& logits = network_.layers().back().output;
    const TensorId probabilities = emitter_.new_tensor("probabilities", logits);
    const auto with_labels = [&](TensorId first) {
      std::vector<TensorId> inputs{first, graph_.labels};
      if (mixes()) inputs.push_back(graph_.mix_of_labels);
      return inputs;
    };
    emitter_.node("softmax_cross_entropy_forward", with_labels(graph_.logits),
                  {probabilities, graph_.metrics}, [problem](Backend backend, KernelRequest& request) {
                    return kernels::softmax_cross_entropy_forward(backend, problem, request);
                  });
    if (!options_.training) return;
    emitter_.phase_ = Phase::backward;
    const TensorId gradient = emitter_.new_tensor("gradient", logits, DType::f32, graph_.logits);
    emitter_.node("softmax_cross_entropy_backward", with_labels(probabilities), {gradient},
                  [problem](Backend backend, KernelRequest& request) {
                    return kernels::softmax_cross_entropy_backward(backend, problem, request);
                  });
    emitter_.contributions_[graph_.logits].push_back(gradient);
  }

  // The first layer's input becomes what a node in front makes of the images.
  void mix_images() {
    const TensorId mixed = graph_.images;
    graph_.tensors[static_cast<std::size_t>(mixed)].role = TensorRole::activation;
    graph_.images = add_tensor({"images", TensorRole::images, DType::f32, network_.layers().front().output});
    Node node{
        "input",
        "mix_forward",
        Phase::forward,
        {graph_.images, graph_.mix_of_images},
        {mixed},
        [](Backend backend, KernelRequest& request) { return kernels::mix_forward(backend, {}, request); }};
    graph_.nodes.insert(graph_.nodes.begin(), std::move(node));
  }

  const Network& network_;
  const GraphOptions options_;
  StepGraph graph_;
  Emitter emitter_;
  std::vector<TensorId> outputs_;  // of every layer
};

StepGraph build_step_graph(const Network& network, const GraphOptions& options) {
  return GraphBuilder(network, options).build();
}

std::vector<int> StepGraph::parameters_by_gradient() const {
  std::vector<std::size_t> finished(tensors.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const TensorId output : nodes[i].outputs) finished[static_cast<std::size_t>(output)] = i;
  std::vector<int> order(parameters.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  if (parameters.empty() || parameters[0].gradient < 0) return order;
  const auto time_of = [&](int index) {
    return finished[static_cast<std::size_t>(parameters[static_cast<std::size_t>(index)].gradient)];
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return time_of(a) < time_of(b); });
  return order;
}

}  // namespace convoy::app
