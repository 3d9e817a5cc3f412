// Tests steps in which a part of the network is frozen, that is, not trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "app/graph/passes/precision.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

Network freeze(Network network, const std::function<bool(const Layer&, const ParameterSpec&)>& frozen) {
  for (LayerId id = 0; id < std::ssize(network.layers()); ++id) {
    const Layer layer = network.layers()[static_cast<std::size_t>(id)];
    for (const ParameterSpec& spec : layer.parameters)
      if (frozen(layer, spec)) network.parameter(id, spec.key).rate = 0;
  }
  return network;
}

bool is_norm(const Layer& layer) { return std::holds_alternative<BatchNorm>(layer.op); }

std::set<std::string> layers_of_backward(const StepGraph& graph) {
  std::set<std::string> layers;
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::backward) layers.insert(node.layer);
  return layers;
}

std::map<std::string, std::vector<float>> gradients_of(const GraphRunner& runner) {
  std::map<std::string, std::vector<float>> all;
  for (const GraphParameter& parameter : runner.graph().parameters)
    if (parameter.gradient >= 0) all[parameter.spec.name] = runner.read(parameter.gradient);
  return all;
}

TEST(FrozenParameters, EndBackwardBelowTheLowestTrainedLayer) {
  const Network head = freeze(fuse(residual()), [](const Layer& l, const auto&) { return l.name != "fc"; });
  EXPECT_EQ(layers_of_backward(build_step_graph(head, {})), (std::set<std::string>{"loss", "fc"}));
  const Network upper = freeze(fuse(residual()), [](const Layer& l, const auto&) {
    return l.name[0] <= 'c' || l.name.starts_with("stem");
  });
  for (const std::string& layer : layers_of_backward(build_step_graph(upper, {})))
    EXPECT_TRUE(layer[0] >= 'd') << layer;
  const Network none = freeze(residual(), [](const auto&, const auto&) { return true; });
  EXPECT_THROW(build_step_graph(none, {}), std::runtime_error);
  EXPECT_NO_THROW(build_step_graph(none, {.training = false}));
}

TEST(FrozenParameters, ComeLastInTheFlatBuffers) {
  const StepGraph graph =
      build_step_graph(freeze(every_op(), [](const Layer& l, const auto&) { return l.name == "fc2"; }), {});
  const std::vector<int> order = graph.parameters_by_gradient();
  ASSERT_EQ(order.size(), graph.parameters.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(graph.parameters[static_cast<std::size_t>(order[i])].gradient < 0, i + 2 >= order.size()) << i;
}

// Freezes all parameters of one kind (weights, biases, …) at a time, and then all parameters of
// every second layer.
TEST(FrozenParameters, LeaveTheOtherGradientsAsTheyAre) {
  using Choice = std::function<bool(const Layer&, const ParameterSpec&)>;
  const std::vector<Choice> choices{
      [](const Layer&, const ParameterSpec& spec) { return spec.key == "weight"; },
      [](const Layer&, const ParameterSpec& spec) { return spec.key == "bias"; },
      [](const Layer& layer, const ParameterSpec&) {
        return !is_norm(layer) && hash_of(layer.name) % 2 == 0;
      },
      [](const Layer& layer, const ParameterSpec&) {
        return !is_norm(layer) && hash_of(layer.name) % 2 == 1;
      }};
  for (const Network& network : {every_op(), residual(), modern(), fuse(residual()), fuse(modern())}) {
    GraphRunner all(network, {}, kernels::Backend::cpu);
    all.run();
    const auto expected = gradients_of(all);
    for (const Choice& choice : choices) {
      GraphRunner some(freeze(network, choice), {}, kernels::Backend::cpu);
      some.run();
      const auto found = gradients_of(some);
      EXPECT_LT(found.size(), expected.size());
      EXPECT_GT(found.size(), 0u);
      for (const auto& [name, gradient] : found) EXPECT_EQ(gradient, expected.at(name)) << name;
    }
  }
}

double slope_along(GraphRunner& runner, const GraphParameter& parameter, std::size_t element) {
  constexpr float kStep = 2e-3f;
  const std::vector<float> centre = runner.read(parameter.tensor);
  std::vector<float> moved = centre;
  moved[element] = centre[element] + kStep;
  runner.write(parameter.tensor, moved);
  const double after = runner.run();
  moved[element] = centre[element] - kStep;
  runner.write(parameter.tensor, moved);
  const double before = runner.run();
  runner.write(parameter.tensor, centre);
  return (after - before) / (2 * kStep);
}

// A frozen batch norm (with a residual, with a ReLU, or plain) is an affine map with fixed
// statistics. Its gradients must be those of this map, and the statistics must not change.
TEST(FrozenBatchNorms, AreAffineMaps) {
  for (const Network& plain : {residual(), fuse(residual()), modern(), fuse(modern())}) {
    const Network network = freeze(plain, [](const Layer& l, const auto&) { return is_norm(l); });
    GraphRunner runner(network, {});
    const std::vector<float> states = runner.states();
    runner.run();
    EXPECT_EQ(runner.states(), states);
    const auto gradients = gradients_of(runner);
    for (const GraphParameter& parameter : runner.graph().parameters) {
      if (parameter.gradient < 0) continue;
      const auto& gradient = gradients.at(parameter.spec.name);
      const std::size_t element = gradient.size() / 2;
      EXPECT_NEAR(gradient[element], slope_along(runner, parameter, element),
                  2e-3 + 0.02 * std::abs(gradient[element]))
          << parameter.spec.name;
    }
    for (const Node& node : runner.graph().nodes)
      EXPECT_FALSE(node.is<BatchNormForward>() || node.is<BatchNormStatistics>()) << node.layer;
  }
}

// A gradient that no node reads must stay float32, because the kernels write float32.
TEST(FrozenParameters, KeepUnreadGradientsInFullPrecision) {
  const Network network =
      freeze(every_op(), [](const auto&, const ParameterSpec& s) { return s.key == "weight"; });
  StepGraph graph = build_step_graph(network, {});
  store_in_bf16(graph);
  int unread = 0;
  for (const Tensor& tensor : graph.tensors)
    if (tensor.role == TensorRole::activation && tensor.name.ends_with("weight.gradient")) {
      ++unread;
      EXPECT_EQ(tensor.dtype, kernels::DType::f32) << tensor.name;
    }
  EXPECT_GT(unread, 0);
}

}  // namespace
}  // namespace convoy::app
