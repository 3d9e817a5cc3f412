// A batch norm with ReLU may store a mask (which outputs are positive) for backward. Tests that
// backward gives the same result from the mask as from the output itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

TEST(FuseReluMasks, BackwardReadsNoOutputOfAResidualBatchNorm) {
  StepGraph graph = build_step_graph(fuse(residual()), {});
  const auto with_residual = std::ranges::count_if(
      graph.nodes, [](const Node& node) { return node.is<BatchNormForward>() && node.inputs.size() == 7; });
  ASSERT_GT(with_residual, 0);
  fuse_relu_masks(graph);
  std::ptrdiff_t written = 0, read = 0;
  for (const Node& node : graph.nodes) {
    const auto is_mask = [&](TensorId id) {
      return graph.tensors[static_cast<std::size_t>(id)].name.ends_with("/relu_mask");
    };
    written += std::ranges::count_if(node.outputs, is_mask);
    read += std::ranges::count_if(node.inputs, is_mask);
  }
  EXPECT_EQ(written, with_residual);
  EXPECT_EQ(read, with_residual);
}

TEST(FuseReluMasks, GradientsStayTheSame) {
  GraphRunner plain(fuse(residual()), {});
  GraphRunner masked(fuse(residual()), {}, kernels::Backend::reference, Placement::planned, fuse_relu_masks);
  EXPECT_EQ(masked.run(), plain.run());
  EXPECT_EQ(masked.gradients(), plain.gradients());
}

}  // namespace
}  // namespace convoy::app
