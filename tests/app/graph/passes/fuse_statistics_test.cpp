// A convolution or an addition may also write the sums over its output that a batch norm needs.
// Tests that they equal the sums that a separate pass over the output computes.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/compile/compiled_graph.h"
#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

TEST(FuseStatistics, EveryConvolutionAndSumBeforeABatchNormWritesItsSums) {
  const auto statistics = [](const StepGraph& graph) {
    return std::ranges::count_if(graph.nodes, &Node::is<BatchNormStatistics>);
  };
  const auto norms = [](const StepGraph& graph) {
    return std::ranges::count_if(graph.nodes, &Node::is<BatchNormForward>);
  };
  StepGraph graph = build_step_graph(fuse(residual()), {});
  const StepGraph before = graph;
  fuse_statistics(graph);
  EXPECT_LT(statistics(graph), statistics(before));
  EXPECT_EQ(norms(graph), norms(before));
  for (const Node& node : graph.nodes) {
    if (!node.is<BatchNormStatistics>()) continue;
    for (const Node& other : graph.nodes) {
      const bool could = other.is<Conv2dForward>() || other.is<AddForward>();
      EXPECT_FALSE(could && other.outputs[0] == node.inputs[0]) << node.layer;
    }
  }
  EXPECT_EQ(statistics(graph), 1) << "over the output of a batch norm";
  // Every tensor of sums must have one writer.
  for (const auto& [tensors, nodes] : {std::pair(graph.tensors, graph.nodes)})
    for (TensorId id = 0; id < std::ssize(tensors); ++id) {
      const auto writers = std::ranges::count_if(
          nodes, [&](const Node& node) { return std::ranges::find(node.outputs, id) != node.outputs.end(); });
      if (tensors[static_cast<std::size_t>(id)].name.ends_with("/sums")) {
        EXPECT_EQ(writers, 1);
      }
    }
}

TEST(FuseStatistics, SumsOverAConcatenationAreThoseOfItsParts) {
  StepGraph graph = build_step_graph(fuse(dense()), {});
  fuse_statistics(graph);
  std::vector<std::string> read;
  for (const Node& node : graph.nodes)
    if (node.is<BatchNormStatistics>()) read.push_back(node.layer);
  EXPECT_EQ(read, (std::vector<std::string>{"a.bn", "last.bn"})) << "over the outputs of pools";
}

TEST(FuseStatistics, ReducedSumsAreNotJoined) {
  GraphOptions options;
  options.ranks = 2;
  options.synchronised_batch_norm = true;
  StepGraph graph = build_step_graph(fuse(dense()), options);
  fuse_statistics(graph);
  EXPECT_EQ(std::ranges::count_if(graph.nodes, &Node::is<BatchNormStatistics>), 4);
}

TEST(FuseStatistics, GradientsStayTheSame) {
  for (const Network& network : {residual(), dense()}) {
    GraphRunner plain(fuse(network), {});
    GraphRunner fused(fuse(network), {}, kernels::Backend::reference, Placement::planned, fuse_statistics);
    EXPECT_NEAR(fused.run(), plain.run(), 1e-6);
    const auto expected = plain.gradients(), actual = fused.gradients();
    for (const auto& [name, values] : expected)
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(actual.at(name)[i], values[i], 1e-5) << name;
  }
}

}  // namespace
}  // namespace convoy::app
