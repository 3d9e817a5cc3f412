// Tests the import of norms: which of their inputs are parameters, and which values are refused.
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/graph/graph_builder.h"
#include "tests/app/model/import/imported_model.h"

namespace convoy::app::onnx_import {
namespace {

class ImportedNorm : public ImportedModel {
 protected:
  void batch_norm(const std::string& weight, const std::string& bias,
                  ModelMaker::Attributes attributes = {}) {
    maker.node("BatchNormalization",
               {"x", weight, bias, maker.weight("bn.running_mean", {3}), maker.weight("bn.running_var", {3})},
               "b", attributes);
    maker.classify("b", 3);
  }
  // Returns the weights and biases of the first layer.
  std::vector<ParameterSpec> of_norm() const { return maker.network().layers()[1].parameters; }
  static void expect_constants(const std::vector<ParameterSpec>& specs, std::size_t channels) {
    ASSERT_EQ(specs.size(), 2u);
    for (const ParameterSpec& spec : specs) {
      EXPECT_FALSE(spec.trained() || spec.frozen()) << spec.name;
      EXPECT_EQ(spec.parameter_count(), 0) << spec.name;
      ASSERT_NE(spec.values, nullptr) << spec.name;
      EXPECT_EQ(*spec.values, std::vector<float>(channels, spec.key == "weight" ? 1 : 0)) << spec.name;
    }
  }
};

// PyTorch writes ones and zeros in Constant nodes for affine=False.
TEST_F(ImportedNorm, OfConstantsHasNoParameters) {
  const std::string ones = maker.constant("ones", {3}, 1), zeros = maker.constant("zeros", {3}, 0);
  batch_norm(ones, zeros);
  expect_constants(of_norm(), 3);
  Network network = maker.network();
  EXPECT_EQ(network.parameter_count(), 3 * 3 + 3) << "those of the linear layer";
  network.reinitialise();
  expect_constants(network.layers()[1].parameters, 3);
  maker = ModelMaker({2, 3, 8, 8});
  maker.node("InstanceNormalization", {"x", maker.constant("ones", {3}, 1), maker.constant("zeros", {3}, 0)},
             "n");
  maker.classify("n", 3);
  expect_constants(of_norm(), 3);
}

// PyTorch multiplies a group norm with affine=False by one number and adds another.
TEST_F(ImportedNorm, OfGroupsWithOneNumberForAllChannelsHasNoParameters) {
  maker = ModelMaker({2, 4, 8, 8});
  maker.node("Reshape", {"x", maker.integers("groups", {0, 2, -1})}, "g");
  maker.node("InstanceNormalization", {"g", maker.constant("ones", {2}, 1), maker.constant("zeros", {2}, 0)},
             "n");
  maker.node("Reshape", {"n", maker.integers("image", {0, 4, 8, 8})}, "i");
  maker.node("Mul", {"i", maker.constant("one", {1, 1, 1}, 1)}, "m");
  maker.node("Add", {"m", maker.constant("zero", {1, 1, 1}, 0)}, "a");
  maker.classify("a", 4);
  EXPECT_EQ(kinds(maker.network()), "group_norm pool linear");
  expect_constants(of_norm(), 4);
}

TEST_F(ImportedNorm, OfChannelsWithoutInputsHasNoParameters) {
  maker = ModelMaker({2, 3, 8, 8}, 17);
  maker.node("Transpose", {"x"}, "t", {.lists = {{"perm", {0, 2, 3, 1}}}});
  maker.node("LayerNormalization", {"t", "", ""}, "n");
  maker.node("Transpose", {"n"}, "i", {.lists = {{"perm", {0, 3, 1, 2}}}});
  maker.classify("i", 3);
  expect_constants(of_norm(), 3);
}

TEST_F(ImportedNorm, TrainsConstantsThatDifferByChannel) {
  const std::string weight = maker.constant("weight", {3}, 1, 0.5f), bias = maker.constant("bias", {3}, 0);
  batch_norm(weight, bias);
  EXPECT_TRUE(of_norm()[0].trained());
  EXPECT_FALSE(of_norm()[1].trained());
}

// A norm without parameters uses the statistics of the batch, unless it is frozen.
TEST_F(ImportedNorm, OfConstantsUsesTheStatisticsOfTheBatch) {
  maker.node("Conv", {"x", maker.weight("conv.weight", {3, 3, 1, 1})}, "c");
  const std::string ones = maker.constant("ones", {3}, 1), zeros = maker.constant("zeros", {3}, 0);
  maker.node("BatchNormalization",
             {"c", ones, zeros, maker.weight("bn.running_mean", {3}), maker.weight("bn.running_var", {3})},
             "b");
  maker.classify("b", 3);
  Network network = maker.network();
  const auto has = [&]<typename Op>(Op) {
    const StepGraph graph = build_step_graph(network, {});
    return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.is<Op>(); });
  };
  EXPECT_TRUE(has(BatchNormForward{}) && has(BatchNormBackward{}));
  EXPECT_FALSE(has(BatchNormInference{}));
  const StepGraph graph = build_step_graph(network, {});
  for (const GraphParameter& parameter : graph.parameters)
    EXPECT_EQ(parameter.gradient >= 0, !parameter.spec.constant) << parameter.spec.name;
  for (const char* key : {"weight", "bias"}) network.parameter(2, key).rate = 0;
  EXPECT_TRUE(has(BatchNormInference{}));
  EXPECT_FALSE(has(BatchNormForward{}));
}

TEST_F(ImportedNorm, RefusesWrongAttributes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [name, value, error] :
       {std::tuple{"epsilon", nan, "epsilon is nan, expected a finite number of at least 0"},
        {"epsilon", -1.0f, "epsilon is -1, expected a finite number of at least 0"},
        {"momentum", nan, "momentum is nan, expected a number from 0 to 1"},
        {"momentum", 2.0f, "momentum is 2, expected a number from 0 to 1"}}) {
    maker = ModelMaker({2, 3, 8, 8});
    const std::string weight = maker.weight("bn.weight", {3}), bias = maker.weight("bn.bias", {3});
    batch_norm(weight, bias, {.reals = {{name, value}}});
    expect_error(std::string("node the_b (BatchNormalization): ") + error);
  }
  for (const auto& [op, name] : {std::pair{"InstanceNormalization", "epsilon"}, std::pair{"LRN", "beta"}}) {
    maker = ModelMaker({2, 3, 8, 8});
    std::vector<std::string> inputs{"x"};
    if (op == std::string("InstanceNormalization"))
      inputs = {"x", maker.weight("in.weight", {3}), maker.weight("in.bias", {3})};
    maker.node(op, inputs, "n", {.integers = {}, .reals = {{name, nan}}});
    maker.classify("n", 3);
    expect_error_with(std::string("node the_n (") + op + "): " + name + " is nan, expected a finite number");
  }
}

TEST_F(ImportedNorm, RefusesValuesThatAreNotFiniteAndNegativeVariances) {
  maker.node("Conv",
             {"x", maker.filled("conv.weight", {3, 3, 1, 1}, -std::numeric_limits<float>::infinity())}, "c");
  maker.classify("c", 3);
  expect_error("node the_c (Conv): its weight 'conv.weight': found -inf at index 0, expected finite numbers");
  maker = ModelMaker({2, 3, 8, 8});
  maker.node("BatchNormalization",
             {"x", maker.weight("bn.weight", {3}), maker.weight("bn.bias", {3}), maker.weight("bn.mean", {3}),
              maker.filled("bn.variances", {3}, -1)},
             "b");
  maker.classify("b", 3);
  expect_error(
      "node the_b (BatchNormalization): its running_var 'bn.variances': found -1 at index 0, expected "
      "variances of at least 0");
}

}  // namespace
}  // namespace convoy::app::onnx_import
