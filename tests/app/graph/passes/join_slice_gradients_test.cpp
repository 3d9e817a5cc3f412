// Tests join_slice_gradients(). If slices make up a whole tensor, the pass concatenates their
// gradients, with the same bits as before. If slices overlap or leave a gap, it changes nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/graph/passes/fusions.h"
#include "tests/app/graph/graph_runner.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// Returns a network with two slices of one tensor: channels 0 to 2, and all channels from `second`
// on. The slices overlap if `second` is less than 3, and leave a gap if it is more.
Network sliced(std::int64_t second) {
  Network net("sliced", {4, 3, 5, 5});
  const LayerId x = net.add("shuffle", ChannelShuffle{2}, net.add("conv", Conv2d::square(8, 3, 1, 1), 0));
  const LayerId right = net.add("right", Slice{second, 8 - second}, x);
  const LayerId left = net.add("left", Slice{0, 3}, x);
  const LayerId both = net.add("both", Concat{}, {net.add("relu", Relu{}, right), left});
  net.add("fc", Linear{5}, both);
  return net;
}

auto slices_of(const StepGraph& graph) {
  return std::ranges::count_if(graph.nodes, &Node::is<SliceBackward>);
}

TEST(JoinSliceGradients, ReplacesASumOfAllChannels) {
  StepGraph graph = build_step_graph(sliced(3), {});
  EXPECT_EQ(slices_of(graph), 2);
  join_slice_gradients(graph);
  EXPECT_EQ(slices_of(graph), 0);
}

TEST(JoinSliceGradients, LeavesSlicesThatOverlapOrLeaveAGap) {
  for (const std::int64_t second : {2, 4}) {
    StepGraph graph = build_step_graph(sliced(second), {});
    join_slice_gradients(graph);
    EXPECT_EQ(slices_of(graph), 2) << second;
  }
}

TEST(JoinSliceGradients, KeepsTheBitsOfAllGradients) {
  for (const Network& network : {sliced(3), sliced(2), modern()}) {
    GraphRunner plain(network, {});
    GraphRunner joined(network, {}, kernels::Backend::reference, Placement::planned, join_slice_gradients);
    EXPECT_EQ(joined.run(), plain.run());
    EXPECT_EQ(joined.gradients(), plain.gradients()) << network.name();
  }
}

}  // namespace
}  // namespace convoy::app
