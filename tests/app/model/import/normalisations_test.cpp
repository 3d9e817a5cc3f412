// Tests the import of norms: which attributes and values are refused.
#include <cmath>
#include <limits>

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
};

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
