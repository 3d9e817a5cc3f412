// Tests the properties of step graphs on which scheduling, placement and the reuse of memory rely.
#include "app/graph/graph_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/model/zoo/zoo.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

const Tensor& tensor_of(const StepGraph& graph, TensorId id) {
  return graph.tensors[static_cast<std::size_t>(id)];
}

template <typename Op>
std::ptrdiff_t count(const StepGraph& graph) {
  return std::ranges::count_if(graph.nodes, &Node::is<Op>);
}

std::vector<Network> networks() {
  std::vector<Network> all{every_op(), residual(), rectifying()};
  for (const char* name :
       {"linear", "mlp", "lenet", "cifar10_quick", "resnet18", "resnet50", "googlenet", "wrn16_4"})
    all.push_back(make_network(name, {2, 3, 32, 32}, 10));
  for (const char* name : {"alexnet", "vgg16"}) all.push_back(make_network(name, {2, 3, 224, 224}, 10));
  const std::size_t unfused = all.size();
  for (std::size_t i = 0; i < unfused; ++i) all.push_back(fuse(all[i]));
  return all;
}

StepGraph build(const Network& network, int ranks = 1) {
  GraphOptions options;
  options.ranks = ranks;
  return build_step_graph(network, options);
}

template <typename Check>
void for_each_network(Check check) {
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name() + ", " + std::to_string(network.layers().size()) + " layers");
    check(network);
  }
}

TEST(Graphs, NodesComeAfterWhatTheyRead) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    std::set<TensorId> defined{graph.images, graph.labels};
    for (const GraphParameter& parameter : graph.parameters) defined.insert(parameter.tensor);
    for (const auto& [tensor, spec] : graph.states) defined.insert(tensor);
    for (const Node& node : graph.nodes) {
      for (const TensorId input : node.inputs)
        EXPECT_TRUE(defined.contains(input))
            << node.layer << " " << node.name() << " reads " << tensor_of(graph, input).name << " too early";
      defined.insert(node.outputs.begin(), node.outputs.end());
    }
    EXPECT_TRUE(defined.contains(graph.metrics));
  });
}

TEST(Graphs, EveryTensorHasOneWriterAndEveryResultAReader) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    std::map<TensorId, int> writers, readers;
    for (const Node& node : graph.nodes) {
      for (const TensorId input : node.inputs) ++readers[input];
      for (const TensorId output : node.outputs) ++writers[output];
    }
    for (TensorId id = 0; id < std::ssize(graph.tensors); ++id) {
      const Tensor& tensor = tensor_of(graph, id);
      const bool written = tensor.role == TensorRole::activation || tensor.role == TensorRole::gradient ||
                           tensor.role == TensorRole::metrics;
      EXPECT_EQ(writers[id], written ? 1 : 0) << tensor.name;
      if (tensor.role == TensorRole::activation || tensor.role == TensorRole::parameter) {
        EXPECT_GE(readers[id], 1) << tensor.name << " has no reader";
      }
    }
  });
}

TEST(Graphs, GradientsHaveTheShapeOfTheirPartners) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    for (const GraphParameter& parameter : graph.parameters) {
      EXPECT_EQ(tensor_of(graph, parameter.gradient).same_layout_as, parameter.tensor) << parameter.spec.name;
      EXPECT_EQ(tensor_of(graph, parameter.gradient).role, TensorRole::gradient) << parameter.spec.name;
    }
    for (const Tensor& tensor : graph.tensors)
      if (tensor.same_layout_as >= 0) {
        EXPECT_EQ(tensor.shape, tensor_of(graph, tensor.same_layout_as).shape) << tensor.name;
        EXPECT_NE(tensor.same_layout_as, graph.images)
            << tensor.name << ": no node needs the gradient of the images";
      }
  });
}

TEST(Graphs, BackwardFollowsForward) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    const auto first_backward = std::ranges::find(graph.nodes, Phase::backward, &Node::phase);
    ASSERT_NE(first_backward, graph.nodes.end());
    EXPECT_TRUE(first_backward->is<SoftmaxCrossEntropyBackward>());
    EXPECT_TRUE(std::all_of(first_backward, graph.nodes.end(),
                            [](const Node& node) { return node.phase == Phase::backward; }));
  });
}

TEST(Graphs, ParametersAreOrderedByTheEndOfTheirGradients) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    std::vector<int> order = graph.parameters_by_gradient();
    std::vector<std::size_t> ends;
    for (const int index : order) {
      const TensorId gradient = graph.parameters[static_cast<std::size_t>(index)].gradient;
      for (std::size_t node = 0; node < graph.nodes.size(); ++node)
        if (std::ranges::count(graph.nodes[node].outputs, gradient) > 0) ends.push_back(node);
    }
    EXPECT_TRUE(std::ranges::is_sorted(ends));
    std::ranges::sort(order);
    for (int i = 0; i < std::ssize(order); ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(ends.size(), graph.parameters.size());
  });
}

TEST(Graphs, SynchronisedStatisticsAreReducedOverSeveralRanksOnly) {
  for_each_network([](const Network& network) {
    const auto norms = count<BatchNormForward>(build(network));
    EXPECT_EQ(count<AllReduce>(build(network)), 0);
    const StepGraph graph = build(network, 3);
    EXPECT_EQ(count<AllReduce>(graph), 2 * norms);
    for (const Node& node : graph.nodes)
      if (node.is<AllReduce>()) {
        EXPECT_EQ(tensor_of(graph, node.inputs[0]).dtype, kernels::DType::f64);
      }
    const StepGraph local = build_step_graph(network, {.synchronised_batch_norm = false, .ranks = 3});
    EXPECT_EQ(count<AllReduce>(local), 0);
  });
}

TEST(Graphs, EvaluationHasNoGradientsAndNoBatchStatistics) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build_step_graph(network, {.training = false, .ranks = 3});
    for (const Node& node : graph.nodes) EXPECT_EQ(node.phase, Phase::forward) << node.layer;
    for (const Tensor& tensor : graph.tensors) EXPECT_NE(tensor.role, TensorRole::gradient) << tensor.name;
    EXPECT_EQ(count<BatchNormStatistics>(graph), 0);
    EXPECT_EQ(count<AllReduce>(graph), 0);
  });
}

TEST(Graphs, BackwardCostsTwiceForwardButForTheFirstLayer) {
  for_each_network([](const Network& network) {
    const StepGraph graph = build(network);
    double forward = 0, backward = 0, first = 0;
    for (const Node& node : graph.nodes) {
      if (node.phase == Phase::backward)
        backward += node.flops;
      else
        forward += node.flops;
      if (first == 0) first = node.flops;
    }
    EXPECT_DOUBLE_EQ(backward, 2 * forward - first);
  });
}

TEST(GraphBuilder, GradientsOfATensorReadTwiceAreSummed) {
  // The input of the first residual block gets one gradient from the convolution and one from the
  // shortcut.
  const StepGraph graph = build_step_graph(residual(), {});
  const auto sums_in_backward = std::ranges::count_if(
      graph.nodes, [](const Node& node) { return node.is<AddForward>() && node.phase == Phase::backward; });
  // The outputs of stem, identity and normed need a sum. The output of `down` needs none, because
  // the backward of the batch norm that reads it adds both gradients itself.
  EXPECT_EQ(sums_in_backward, 3);
}

// In these networks a batch norm and a shortcut read the input of a block. The backward of the
// batch norm must add both gradients.
TEST(GraphBuilder, PreActivationBlocksNeedNoSumsInBackward) {
  const StepGraph graph = build_step_graph(fuse(make_network("wrn16_2", {2, 3, 8, 8}, 10)), {});
  EXPECT_EQ(count<AddForward>(graph), 6) << "one for each block, in forward";
  EXPECT_EQ(std::ranges::count_if(
                graph.nodes,
                [](const Node& node) { return node.is<BatchNormBackward>() && node.inputs.size() == 7; }),
            3)
      << "one for each shortcut without a convolution";
}

}  // namespace
}  // namespace convoy::app
