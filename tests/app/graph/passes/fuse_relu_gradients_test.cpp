// The backward of a convolution may also apply the derivative of the ReLU that made its input. The
// gradient must be that of two separate operations.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

TEST(FuseReluGradients, OnlyWhereAConvolutionAloneReadsTheRelusOutput) {
  StepGraph graph = build_step_graph(fuse(rectifying()), {});
  fuse_relu_gradients(graph);
  std::vector<std::string> masked, left;
  for (const Node& node : graph.nodes) {
    if (node.is<ReluBackward>()) left.push_back(node.layer);
    if (node.is<Conv2dBackwardData>() && node.inputs.size() == 3) masked.push_back(node.layer);
  }
  EXPECT_EQ(masked, (std::vector<std::string>{"c", "b"})) << "the gradients of the pool and of a";
  EXPECT_EQ(left, (std::vector<std::string>{"f", "e", "d", "c"}))
      << "their outputs are read by a linear layer, a sum, or two layers";
}

TEST(FuseReluGradients, GradientsStayTheSame) {
  GraphRunner plain(rectifying(), {}), moved(fuse(rectifying()), {});
  GraphRunner fused(fuse(rectifying()), {}, kernels::Backend::reference, Placement::planned,
                    fuse_relu_gradients);
  EXPECT_EQ(moved.run(), plain.run());
  EXPECT_EQ(fused.run(), plain.run());
  EXPECT_EQ(moved.gradients(), plain.gradients());
  EXPECT_EQ(fused.gradients(), plain.gradients());
}

}  // namespace
}  // namespace convoy::app
