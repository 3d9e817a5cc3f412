// fuse() merges layers, for example a batch norm with the ReLU after it. It must not lose, rename
// or reorder parameters, and must keep tensors that other layers read.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

template <typename Op>
int count(const Network& network) {
  return static_cast<int>(std::ranges::count_if(
      network.layers(), [](const Layer& layer) { return std::holds_alternative<Op>(layer.op); }));
}

struct Expected {
  const char* name;
  int relus, adds;  // numbers of these layers that must remain
};

// fuse() cannot merge a ReLU after a linear layer, nor an addition without a ReLU after it, as in
// pre-activation blocks.
constexpr Expected kFusedZoo[] = {{"linear", 0, 0},         {"mlp", 2, 0},       {"lenet", 1, 0},
                                  {"cifar10_quick", 0, 0},  {"alexnet", 2, 0},   {"vgg16", 2, 0},
                                  {"googlenet", 0, 0},      {"resnet18", 0, 0},  {"resnet152", 0, 0},
                                  {"resnet50_cifar", 0, 0}, {"wrn28_10", 0, 12}, {"mobilenet_v2", 0, 10}};

TEST(FusedZoo, AbsorbsRelusAndSums) {
  for (const Expected& expected : kFusedZoo) {
    SCOPED_TRACE(expected.name);
    const Network network = make_network(expected.name, {1, 3, 224, 224}, 10), fused = fuse(network);
    EXPECT_EQ(count<Relu>(fused), expected.relus);
    EXPECT_EQ(count<Add>(fused), expected.adds);
    EXPECT_EQ(count<Activation>(fused), 0);
    EXPECT_EQ(count<BatchNorm>(fused), count<BatchNorm>(network));
    EXPECT_EQ(count<Conv2d>(fused), count<Conv2d>(network));
    EXPECT_EQ(fuse(fused).layers().size(), fused.layers().size()) << "a second pass found something to do";
  }
}

TEST(FusedZoo, KeepsParametersInTheirOrder) {
  for (const Expected& expected : kFusedZoo) {
    const Network network = make_network(expected.name, {1, 3, 224, 224}, 10);
    const auto before = network.parameters(), after = fuse(network).parameters();
    ASSERT_EQ(before.size(), after.size()) << expected.name;
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].name, after[i].name);
      EXPECT_EQ(before[i].shape, after[i].shape) << before[i].name;
      EXPECT_EQ(before[i].initializer.kind, after[i].initializer.kind) << before[i].name;
      EXPECT_EQ(before[i].initializer.value, after[i].initializer.value) << before[i].name;
    }
  }
}

class Fuse : public testing::Test {
 protected:
  const Layer& find(const Network& network, const std::string& name) {
    const auto found = std::ranges::find(network.layers(), name, &Layer::name);
    if (found == network.layers().end()) throw std::runtime_error("no layer " + name);
    return *found;
  }

  Network network_{"net", {2, 4, 5, 5}};
};

TEST_F(Fuse, ResidualAndReluBecomeOneBatchNorm) {
  const LayerId conv = network_.add("conv", Conv2d::square(4, 3, 1, 1), network_.input());
  const LayerId norm = network_.add("norm", BatchNorm{}, conv);
  const LayerId add = network_.add("add", Add{}, {network_.input(), norm});
  network_.add("relu", Relu{}, add);
  const Network fused = fuse(network_);
  ASSERT_EQ(fused.layers().size(), 3u);
  const Layer& layer = find(fused, "norm");
  EXPECT_TRUE(std::get<BatchNorm>(layer.op).relu);
  EXPECT_EQ(layer.inputs, (std::vector<LayerId>{1, 0}))
      << "the normalised tensor comes first, then the residual";
}

TEST_F(Fuse, AnActivationMovesIntoTheBatchNormBeforeIt) {
  using kernels::ActivationKind;
  const LayerId norm = network_.add("norm", BatchNorm{}, network_.input());
  const LayerId relu6 = network_.add("relu6", Activation::relu6(), norm);
  const LayerId silu = network_.add("silu", Activation::of(ActivationKind::silu), relu6);
  const LayerId read_twice = network_.add("norm2", BatchNorm{}, silu);
  const LayerId swish = network_.add("swish", Activation::of(ActivationKind::hard_swish), read_twice);
  network_.add("relu", Relu{}, network_.add("sum", Add{}, {swish, read_twice}));
  const Network fused = fuse(network_);
  ASSERT_EQ(fused.layers().size(), network_.layers().size() - 1);
  const auto& activation = std::get<BatchNorm>(find(fused, "norm").op).activation;
  ASSERT_TRUE(activation.has_value());
  EXPECT_EQ(activation->kind, ActivationKind::clip);
  EXPECT_EQ(activation->max, 6);
  EXPECT_FALSE(std::get<BatchNorm>(find(fused, "norm2").op).activation);
  EXPECT_EQ(fuse(fused).layers().size(), fused.layers().size());
}

TEST_F(Fuse, LeavesWhatComesAfterABatchNormWithAnActivation) {
  const LayerId norm =
      network_.add("norm", BatchNorm{.activation = kernels::ActivationProblem{}}, network_.input());
  network_.add("relu", Relu{}, norm);
  const LayerId norm2 =
      network_.add("norm2", BatchNorm{.activation = kernels::ActivationProblem{}}, network_.input());
  network_.add("silu", Activation::of(kernels::ActivationKind::silu), norm2);
  const LayerId norm3 =
      network_.add("norm3", BatchNorm{.activation = kernels::ActivationProblem{}}, network_.input());
  network_.add("relu3", Relu{}, network_.add("sum", Add{}, {norm3, network_.input()}));
  EXPECT_EQ(fuse(network_).layers().size(), network_.layers().size());
}

TEST_F(Fuse, ReluMovesAfterTheMaxPoolAndIntoIt) {
  const LayerId conv = network_.add("conv", Conv2d::square(4, 3, 1, 1), network_.input());
  const LayerId pool = network_.add("pool", Pool::max(2, 1), network_.add("relu", Relu{}, conv));
  network_.add("relu2", Relu{}, network_.add("pool2", Pool::max(2, 1), pool));
  const Network fused = fuse(network_);
  ASSERT_EQ(fused.layers().size(), 4u);
  EXPECT_FALSE(std::get<Conv2d>(find(fused, "conv").op).relu);
  EXPECT_TRUE(std::get<Pool>(find(fused, "pool").op).relu);
  EXPECT_TRUE(std::get<Pool>(find(fused, "pool2").op).relu);
  EXPECT_EQ(fuse(fused).layers().size(), fused.layers().size());
}

TEST_F(Fuse, ReluStaysBeforeAnAverageAndWhereOthersReadIt) {
  const LayerId relu =
      network_.add("relu", Relu{}, network_.add("conv", Conv2d::square(4, 3, 1, 1), network_.input()));
  network_.add("average", Pool::average(2, 1), relu);
  const LayerId relu2 =
      network_.add("relu2", Relu{}, network_.add("conv2", Conv2d::square(4, 3, 1, 1), relu));
  network_.add("pool", Pool::max(2, 1), relu2);
  network_.add("sum", Add{}, {relu2, relu});
  network_.add("relu3", Relu{}, network_.add("average2", Pool::average(2, 1), relu2));
  const Network fused = fuse(network_);
  EXPECT_TRUE(std::get<Conv2d>(find(fused, "conv").op).relu);
  EXPECT_TRUE(std::get<Conv2d>(find(fused, "conv2").op).relu);
  EXPECT_FALSE(std::get<Pool>(find(fused, "pool").op).relu);
  EXPECT_FALSE(std::get<Pool>(find(fused, "average2").op).relu);
  EXPECT_EQ(count<Relu>(fused), 1);
}

TEST_F(Fuse, LeavesWhatOthersRead) {
  const LayerId conv = network_.add("conv", Conv2d::square(4, 3, 1, 1), network_.input());
  const LayerId relu = network_.add("relu", Relu{}, conv);
  const LayerId norm = network_.add("norm", BatchNorm{}, relu);
  const LayerId add = network_.add("add", Add{}, {norm, conv});
  const LayerId relu2 = network_.add("relu2", Relu{}, add);
  network_.add("add2", Add{}, {relu2, norm});
  EXPECT_EQ(fuse(network_).layers().size(), network_.layers().size());
}

TEST_F(Fuse, LeavesALayerThatIsAddedToItself) {
  const LayerId norm = network_.add("norm", BatchNorm{}, network_.input());
  const LayerId add = network_.add("add", Add{}, {norm, norm});
  network_.add("relu", Relu{}, add);
  EXPECT_EQ(fuse(network_).layers().size(), network_.layers().size());
}

TEST_F(Fuse, LeavesABatchNormThatDoesMoreAlready) {
  const LayerId rectified = network_.add("rectified", BatchNorm{.relu = true}, network_.input());
  const LayerId add = network_.add("add", Add{}, {rectified, network_.input()});
  const LayerId relu = network_.add("relu", Relu{}, add);
  const LayerId summing = network_.add("summing", BatchNorm{}, {relu, network_.input()});
  const LayerId add2 = network_.add("add2", Add{}, {summing, network_.input()});
  network_.add("relu2", Relu{}, add2);
  EXPECT_EQ(fuse(network_).layers().size(), network_.layers().size());
}

}  // namespace
}  // namespace convoy::app
