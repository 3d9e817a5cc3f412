// Tests the pass that removes the backward_reduce of a batch norm. The convolution that computes
// the gradient for the batch norm then also computes the sums of backward_reduce.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "app/model/zoo/zoo.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

std::ptrdiff_t count_reduces(const StepGraph& graph) {
  return std::ranges::count_if(graph.nodes, &Node::is<BatchNormBackwardReduce>);
}

// Returns a network of three blocks of convolution, batch norm and ReLU. In the second block, conv2
// has the stride `stride`, and a path around conv2 leads to a sum. The path has a 1x1 convolution
// unless `residual` is set.
Network chain(int stride, bool residual) {
  Network net("chain", {4, 3, 8, 8});
  const auto block = [&](int index, LayerId x, int stride_of, LayerId other) {
    const std::string n = std::to_string(index);
    LayerId y = net.add("conv" + n, Conv2d::square(6, 3, stride_of, 1), x);
    y = net.add("bn" + n, BatchNorm{}, y);
    if (other >= 0) y = net.add("add" + n, Add{}, {y, other});
    return net.add("relu" + n, Relu{}, y);
  };
  const LayerId first = block(1, net.input(), 1, -1);
  const LayerId around = residual ? first : net.add("shortcut", Conv2d::square(6, 1, stride), first);
  net.add("fc", Linear{5}, block(3, block(2, first, stride, around), 1, -1));
  return net;
}

// bn1 gets two gradients, from conv2 and from the path around it. The convolution that comes last
// in backward must compute the sums. bn2 and bn3 get one gradient each, so they must keep their
// backward_reduce.
TEST(FuseNormGradients, AConvolutionOfStrideOneTakesTheSumsOfTwoGradients) {
  for (const bool residual : {true, false})
    for (const int stride : {1, 2}) {
      if (residual && stride > 1) continue;
      StepGraph graph = build_step_graph(fuse(chain(stride, residual)), {});
      ASSERT_EQ(count_reduces(graph), 3);
      fuse_norm_gradients(graph);
      EXPECT_EQ(count_reduces(graph), stride == 1 ? 2 : 3);
      for (const Node& node : graph.nodes) {
        if (!node.is<Conv2dBackwardData>()) continue;
        const bool takes = node.layer == (residual ? "conv2" : "shortcut") && stride == 1;
        EXPECT_EQ(node.inputs.size(), takes ? 8u : 2u) << node.layer;
        EXPECT_EQ(node.outputs.size(), takes ? 4u : 1u) << node.layer;
      }
    }
}

// Returns a network in which three convolutions read the same ReLU. In backward, an addition sums
// the first two of their gradients. The pass must not change this addition.
Network three_ways() {
  Network net("three_ways", {4, 3, 8, 8});
  const LayerId norm = net.add("bn", BatchNorm{}, net.add("conv", Conv2d::square(6, 3, 1, 1), net.input()));
  const LayerId x = net.add("relu", Relu{}, norm);
  std::vector<LayerId> ways;
  for (const char* name : {"a", "b", "c"}) ways.push_back(net.add(name, Conv2d::square(6, 1), x));
  net.add("fc", Linear{5}, net.add("add", Add{}, ways));
  return net;
}

TEST(FuseNormGradients, LeavesAReduceOfASumOfThreeGradients) {
  StepGraph graph = build_step_graph(fuse(three_ways()), {});
  fuse_norm_gradients(graph);
  EXPECT_EQ(count_reduces(graph), 1);
}

TEST(FuseNormGradients, GradientsStayTheSame) {
  for (const auto& network :
       {chain(1, true), chain(1, false), chain(2, false), three_ways(), residual(), every_op()}) {
    GraphRunner plain(fuse(network), {});
    for (const bool masks_first : {false, true}) {
      GraphRunner fused(fuse(network), {}, kernels::Backend::reference, Placement::planned,
                        [&](StepGraph& graph) {
                          if (masks_first) fuse_relu_masks(graph);
                          fuse_norm_gradients(graph);
                        });
      EXPECT_EQ(fused.run(), plain.run()) << network.name();
      EXPECT_EQ(fused.gradients(), plain.gradients()) << network.name();
    }
  }
}

// The fused convolution no longer writes one of the gradients alone. So if another node reads it,
// the pass must change nothing.
TEST(FuseNormGradients, LeavesWhatOthersRead) {
  StepGraph graph = build_step_graph(fuse(chain(1, true)), {});
  const auto reduce = std::ranges::find_if(graph.nodes, [](const Node& node) {
    return node.layer == "bn1" && node.is<BatchNormBackwardReduce>();
  });
  ASSERT_NE(reduce, graph.nodes.end());
  Node reader;
  reader.layer = "reader", reader.op = AddForward{}, reader.phase = Phase::backward;
  reader.inputs = {reduce->inputs[4], reduce->inputs.back()};
  graph.nodes.push_back(reader);
  fuse_norm_gradients(graph);
  EXPECT_EQ(count_reduces(graph), 3);
}

// No kernel for convolutions both applies the derivative of a ReLU and computes the sums of a batch
// norm's gradient. So the pass must leave the node that computes these sums.
TEST(FuseNormGradients, LeavesAConvolutionThatAppliesTheGradientOfARelu) {
  StepGraph graph = build_step_graph(fuse(chain(1, true)), {});
  for (Node& node : graph.nodes)
    if (auto* convolution = std::get_if<Conv2dBackwardData>(&node.op); node.layer == "conv2" && convolution)
      convolution->problem.input_relu = true;
  fuse_norm_gradients(graph);
  EXPECT_EQ(count_reduces(graph), 3);
}

// In resnet50, 15 of the 53 batch norms get two gradients: the last one of each block but the final
// one. The pass must remove these 15 backward_reduce nodes, and keep the order of the parameters,
// because checkpoints depend on it.
TEST(FuseNormGradients, TheZoosParametersKeepTheirOrder) {
  for (const std::string name : {"resnet18", "resnet50", "wrn28_10", "googlenet"}) {
    StepGraph graph = build_step_graph(fuse(make_network(name, {2, 3, 64, 64}, 10)), {});
    const auto reduces = count_reduces(graph);
    const std::vector<int> order = graph.parameters_by_gradient();
    fuse_norm_gradients(graph);
    EXPECT_EQ(graph.parameters_by_gradient(), order) << name;
    if (name == "resnet50") {
      EXPECT_EQ(reduces, 53);
      EXPECT_EQ(count_reduces(graph), 38);
    }
  }
}

}  // namespace
}  // namespace convoy::app
