// Tests the pass that lets 1x1 convolutions normalise the input of a batch norm as they read it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "app/model/zoo/zoo.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

constexpr NormInputRule kAlways{.least_elements = 1};

template <typename Op>
std::ptrdiff_t count(const StepGraph& graph) {
  return std::ranges::count_if(graph.nodes, &Node::is<Op>);
}

// How the batch norms of blocks() continue.
enum class After { relu, relu6, nothing, hard_swish };

// Returns a network of a convolution, a batch norm, `after`, and then `ways` convolutions with
// filters of `kernel` x `kernel`, whose outputs are added. Another batch norm follows.
Network blocks(After after, int kernel, int ways, std::int64_t channels = 8) {
  Network net("blocks", {4, 3, 6, 6});
  LayerId x = net.add("conv", Conv2d::square(channels, 3, 1, 1), net.input());
  x = net.add("bn", BatchNorm{}, x);
  if (after == After::relu) x = net.add("relu", Relu{}, x);
  if (after == After::relu6)
    x = net.add("relu6", Activation{{.kind = kernels::ActivationKind::clip, .min = 0, .max = 0.75F}}, x);
  if (after == After::hard_swish)
    x = net.add("swish", Activation{{.kind = kernels::ActivationKind::hard_swish}}, x);
  std::vector<LayerId> outputs;
  for (int i = 0; i < ways; ++i)
    outputs.push_back(net.add("way" + std::to_string(i), Conv2d::square(16, kernel, 1, kernel / 2), x));
  LayerId y = ways > 1 ? net.add("add", Add{}, outputs) : outputs[0];
  y = net.add("relu2", Relu{}, net.add("bn2", BatchNorm{}, y));
  net.add("fc", Linear{5}, y);
  return net;
}

StepGraph fused_graph(const Network& network, const NormInputRule& rule = kAlways) {
  StepGraph graph = build_step_graph(fuse(network), {});
  fuse_norm_inputs(graph, rule);
  return graph;
}

TEST(FuseNormInputs, TheBatchNormComputesAFunctionOfEachChannel) {
  for (const After after : {After::relu, After::relu6, After::nothing})
    for (const int ways : {1, 2}) {
      const StepGraph graph = fused_graph(blocks(after, 1, ways));
      ASSERT_EQ(count<BatchNormAffine>(graph), 1);
      EXPECT_EQ(count<BatchNormForward>(graph), 1);
      const Node& norm = *std::ranges::find_if(graph.nodes, &Node::is<BatchNormAffine>);
      EXPECT_EQ(std::get<BatchNormAffine>(norm.op).problem.pixels, 36);
      int readers = 0;
      for (const Node& node : graph.nodes) {
        if (std::ranges::count(node.inputs, norm.outputs[0]) == 0) continue;
        ++readers;
        EXPECT_EQ(node.inputs.back(), norm.outputs[0]);
        EXPECT_EQ(graph.tensors[static_cast<std::size_t>(node.inputs[0])].name, "conv") << node.layer;
      }
      EXPECT_EQ(readers, 2 * ways);
    }
}

// The pass must leave a batch norm alone if some reader of its output needs the output itself, or
// if no convolution can apply its activation.
TEST(FuseNormInputs, LeavesWhatAConvolutionCannotApply) {
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(blocks(After::relu, 3, 1))), 0);
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(blocks(After::hard_swish, 1, 1))), 0);
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(blocks(After::relu, 1, 1, 12))), 0);
}

// A batch norm that adds a residual is never left to convolutions, which do not read the residual.
TEST(FuseNormInputs, LeavesABatchNormWithAResidual) {
  StepGraph graph = build_step_graph(fuse(blocks(After::nothing, 1, 1)), {});
  Node& norm = *std::ranges::find_if(graph.nodes, &Node::is<BatchNormForward>);
  std::get<BatchNormForward>(norm.op).problem.residual = true;
  norm.inputs.push_back(norm.inputs[0]);
  fuse_norm_inputs(graph, kAlways);
  EXPECT_EQ(count<BatchNormAffine>(graph), 0);
}

TEST(FuseNormInputs, LeavesWhatIsFasterAsAPass) {
  const Network network = blocks(After::relu, 1, 1);
  const std::int64_t elements = std::int64_t{4} * 8 * 6 * 6;
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(network, {.least_elements = elements})), 1);
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(network, {.least_elements = elements + 1})), 0);
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(network, {.least_elements = 1, .most_filters = 16})), 1);
  EXPECT_EQ(count<BatchNormAffine>(fused_graph(network, {.least_elements = 1, .most_filters = 15})), 0);
}

// Returns the norm of the difference of two vectors over the norm of the second one. A norm that is
// nearly 0, such as that of the gradient of a shift before another batch norm, counts as 0.01.
double relative_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, norm = 1e-4;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

// The scale and the shift are rounded to f32, so the results differ by rounding.
TEST(FuseNormInputs, GradientsAndStatisticsStayTheSame) {
  for (const auto& network : {blocks(After::relu, 1, 1), blocks(After::relu, 1, 2),
                              blocks(After::relu6, 1, 1), blocks(After::nothing, 1, 2), deep(1)}) {
    ASSERT_GT(count<BatchNormAffine>(fused_graph(network)), 0) << network.name();
    for (const bool others_first : {false, true}) {
      GraphRunner plain(fuse(network), {});
      GraphRunner fused(fuse(network), {}, kernels::Backend::reference, Placement::planned,
                        [&](StepGraph& graph) {
                          if (others_first) fuse_for_gpu(graph, true, {});
                          fuse_norm_inputs(graph, kAlways);
                        });
      EXPECT_NEAR(fused.run(), plain.run(), 1e-5) << network.name();
      const auto expected = plain.gradients(), found = fused.gradients();
      ASSERT_EQ(found.size(), expected.size());
      for (const auto& [name, gradient] : expected)
        EXPECT_LT(relative_difference(found.at(name), gradient), 1e-4) << network.name() << ", " << name;
      for (std::size_t i = 0; i < plain.graph().states.size(); ++i)
        EXPECT_LT(relative_difference(fused.read(fused.graph().states[i].tensor),
                                      plain.read(plain.graph().states[i].tensor)),
                  1e-6)
            << network.name() << ", " << plain.graph().states[i].spec.name;
    }
  }
}

}  // namespace
}  // namespace convoy::app
