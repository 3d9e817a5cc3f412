// Under a memory limit, forward operations run again in backward instead of keeping their outputs.
// Tests which operations can do so, and which outputs the second run leaves out.
#include "app/graph/recomputed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

Node node_of(NodeOp op, int outputs) {
  Node node;
  node.op = std::move(op);
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(i);
  return node;
}

TEST(Recomputed, EveryForwardOperationRunsAgainButSumsAndTheLoss) {
  for (const Network& network :
       {every_op(), residual(), rectifying(), grouped(), modern(), auxiliary(), deep(1)}) {
    StepGraph graph = build_step_graph(fuse(network), {.ranks = 2});
    for (const bool fused : {false, true}) {
      if (fused) fuse_for_gpu(graph, true, NormInputRule{.least_elements = 1});
      for (const Node& node : graph.nodes) {
        if (node.phase == Phase::backward) continue;
        const bool once = node.is<BatchNormStatistics>() || node.is<BatchNormAffine>() ||
                          node.is<SoftmaxCrossEntropyForward>() || node.is<AllReduce>();
        EXPECT_EQ(!recomputed(node, {0}).has_value(), once) << node.name() << " of " << node.layer;
      }
    }
  }
}

TEST(Recomputed, OperationsOfBackwardDoNotRunAgain) {
  EXPECT_FALSE(recomputed(node_of(Conv2dBackwardData{}, 1), {0}));
  EXPECT_FALSE(recomputed(node_of(BatchNormBackwardReduce{}, 3), {0}));
}

TEST(Recomputed, SumsForABatchNormAreLeftOut) {
  Conv2dForward convolution;
  EXPECT_TRUE(recomputed(node_of(convolution, 1), {0})->same);
  convolution.problem.statistics = true;
  const auto again = recomputed(node_of(convolution, 2), {0});
  EXPECT_FALSE(again->same);
  EXPECT_EQ(again->outputs, std::vector<int>{0});
  EXPECT_TRUE(std::get<Conv2dForward>(again->op).problem.statistics) << "another kernel has other bits";
  EXPECT_FALSE(writes_sums(std::get<Conv2dForward>(again->op).problem));
  AddForward addition{{.statistics = true}};
  EXPECT_EQ(recomputed(node_of(addition, 2), {0})->outputs, std::vector<int>{0});
}

TEST(Recomputed, ABatchNormUpdatesItsStatisticsOnceAndWritesItsMaskIfWanted) {
  BatchNormForward norm;
  norm.problem.relu = norm.problem.relu_mask = true;
  const auto output = recomputed(node_of(norm, 2), {0});
  EXPECT_EQ(std::get<BatchNormForward>(output->op).problem.momentum, 0);
  EXPECT_FALSE(std::get<BatchNormForward>(output->op).problem.relu_mask);
  EXPECT_EQ(output->outputs, std::vector<int>{0});
  const auto mask = recomputed(node_of(norm, 2), {1});
  EXPECT_TRUE(std::get<BatchNormForward>(mask->op).problem.relu_mask);
  EXPECT_EQ(mask->outputs, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace convoy::app
