#include "app/model/drop_path.h"

#include <gtest/gtest.h>

#include <map>

#include "app/errors.h"
#include "app/model/zoo/zoo.h"
#include "tests/app/model/tiny_networks.h"

namespace convoy::app {
namespace {

// Returns the rate of every stochastic depth, by the name of the layer before it.
std::map<std::string, float> rates_of(const Network& network) {
  std::map<std::string, float> rates;
  for (const Layer& layer : network.layers()) {
    const auto* dropout = std::get_if<Dropout>(&layer.op);
    if (dropout == nullptr || !dropout->whole_samples) continue;
    rates[network.layers()[static_cast<std::size_t>(layer.inputs[0])].name] = dropout->rate;
  }
  return rates;
}

TEST(DropPath, RisesOverTheResidualBranches) {
  // resnet18 has eight residual sums, whose branches must get evenly rising rates from 0 to 0.7.
  // Three sums have a convolution in the shortcut, which must get no rate.
  const auto rates = rates_of(with_drop_path(make_network("resnet18", {2, 3, 64, 64}, 10), 0.7f));
  ASSERT_EQ(rates.size(), 7u) << "the first branch has rate 0";
  EXPECT_FLOAT_EQ(rates.at("layer1.1.bn2"), 0.1f);
  EXPECT_FLOAT_EQ(rates.at("layer2.0.bn2"), 0.2f) << "not on the shortcut";
  EXPECT_FLOAT_EQ(rates.at("layer4.1.bn2"), 0.7f);
}

TEST(DropPath, RefusesANetworkWithoutResidualSums) {
  const Network network = make_network("vgg11", {2, 3, 224, 224}, 10);
  EXPECT_NO_THROW(with_drop_path(network, 0));
  try {
    with_drop_path(network, 0.25f);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--drop-path: found 0.25, but vgg11 has no residual sum, expected 0 or no --drop-path");
  }
}

TEST(DropPath, ReplacesTheNetworksOwn) {
  const Network own = make_network("efficientnet_b0", {2, 3, 64, 64}, 10);
  const auto before = rates_of(own), after = rates_of(with_drop_path(own, 0.8f));
  EXPECT_EQ(before.size(), 9u);
  EXPECT_EQ(after.size(), 8u) << "the first branch has rate 0";
  EXPECT_FLOAT_EQ(after.rbegin()->second, 0.8f);
  EXPECT_TRUE(rates_of(with_drop_path(own, 0)).empty());
}

TEST(DropPath, KeepsParametersAndLeavesOtherSumsAlone) {
  const Network network = residual();
  const Network dropped = with_drop_path(network, 0.5f);
  EXPECT_EQ(dropped.parameter_count(), network.parameter_count());
  ASSERT_EQ(dropped.parameters().size(), network.parameters().size());
  for (std::size_t i = 0; i < network.parameters().size(); ++i)
    EXPECT_EQ(dropped.parameters()[i].name, network.parameters()[i].name);
  // Only the branch of b.add gets a rate. In c.add it is not clear which term is the branch,
  // because both are equally deep, and d.add has three terms.
  EXPECT_EQ(rates_of(dropped), (std::map<std::string, float>{{"b.bn", 0.5f}}));
}

}  // namespace
}  // namespace convoy::app
