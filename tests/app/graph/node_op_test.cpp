// Tests the names and kernels of the operations of nodes.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "app/graph/graph_builder.h"
#include "app/graph/passes/fusions.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

template <std::size_t... I>
std::vector<NodeOp> all_operations(std::index_sequence<I...>) {
  return {NodeOp(std::in_place_index<I>)...};
}

TEST(NodeOp, EveryOperationHasANameOfItsOwn) {
  const auto operations = all_operations(std::make_index_sequence<std::variant_size_v<NodeOp>>());
  std::set<std::string_view> names;
  for (const NodeOp& op : operations) EXPECT_TRUE(names.insert(name_of(op)).second) << name_of(op);
  for (const char* name :
       {"conv2d_backward_data", "softmax_cross_entropy_forward", "all_reduce", "send_begin"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(NodeOp, TheNameOfATransferIsItsAction) {
  EXPECT_EQ(name_of(Transfer{Transfer::Action::send_finish, 0, 1}), "send_finish");
  EXPECT_EQ(name_of(Transfer{Transfer::Action::receive_begin, 0, 1}), "receive_begin");
  EXPECT_EQ(name_of(Transfer{Transfer::Action::receive_finish, 0, 1}), "receive_finish");
}

TEST(NodeOp, ExchangesHaveNoKernel) {
  kernels::KernelRequest request;
  EXPECT_THROW(make_kernel(AllReduce{}, kernels::Backend::reference, request), std::logic_error);
  EXPECT_THROW(make_kernel(Transfer{}, kernels::Backend::reference, request), std::logic_error);
}

TEST(NodeOp, ARecomputedNodeSaysSoInItsName) {
  Node node;
  node.op = BatchNormForward{};
  EXPECT_EQ(node.name(), "batch_norm_forward");
  node.recompute = true;
  EXPECT_EQ(node.name(), "batch_norm_forward_again");
}

// Running a fusion pass on a graph that it has already changed must change nothing. The pass must
// see from the nodes' attributes what it did before.
TEST(Fusions, ASecondRunChangesNothing) {
  for (const Network& network : {every_op(), residual(), rectifying(), grouped(), deep(1)}) {
    StepGraph once = build_step_graph(fuse(network), {});
    fuse_for_gpu(once, true, NormInputRule{.least_elements = 1});
    StepGraph twice = once;
    fuse_for_gpu(twice, true, NormInputRule{.least_elements = 1});
    ASSERT_EQ(twice.nodes.size(), once.nodes.size()) << network.name();
    EXPECT_EQ(twice.tensors.size(), once.tensors.size()) << network.name();
    for (std::size_t i = 0; i < once.nodes.size(); ++i) {
      EXPECT_EQ(twice.nodes[i].inputs, once.nodes[i].inputs) << once.nodes[i].layer;
      EXPECT_EQ(twice.nodes[i].outputs, once.nodes[i].outputs) << once.nodes[i].layer;
    }
  }
}

}  // namespace
}  // namespace convoy::app
