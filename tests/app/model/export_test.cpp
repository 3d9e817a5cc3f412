// Tests the content of an exported ONNX file: all outputs, the parameters by their names, and batch
// norms that are folded into convolutions.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "app/model/export/onnx_export.h"
#include "tests/app/model/import/model_maker.h"

namespace convoy::app {
namespace {

using onnx_import::ModelMaker;

class OnnxExport : public testing::Test {
 protected:
  // Returns a network with an auxiliary classifier and a batch norm.
  static Network two_heads() {
    ModelMaker maker({2, 3, 8, 8});
    maker.node("Conv", {"x", maker.weight("conv.weight", {4, 3, 3, 3})}, "c");
    maker.node("BatchNormalization",
               {"c", maker.weight("bn.weight", {4}), maker.weight("bn.bias", {4}),
                maker.weight("bn.mean", {4}), maker.weight("bn.var", {4})},
               "b");
    maker.node("GlobalMaxPool", {"b"}, "m");
    maker.node("Flatten", {"m"}, "mf");
    maker.node("Gemm", {"mf", maker.weight("aux.weight", {4, 3})}, "auxiliary");
    maker.classify("b", 4);
    maker.add_output("auxiliary");
    return maker.network();
  }
  void TearDown() override { std::filesystem::remove(path); }

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("convoy_export." + std::to_string(getpid()) + ".onnx");
};

std::map<std::string, std::vector<float>> values_of(const Network& network) {
  std::map<std::string, std::vector<float>> values;
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs) values[spec.name] = *spec.values;
  return values;
}

TEST_F(OnnxExport, KeepsAllOutputsAndCountsTheParameters) {
  const Network network = two_heads();
  EXPECT_EQ(write_onnx(path, network, {}), network.parameter_count());
  const ModelFile file(path);
  const Network read = file.network({2, 3, 8, 8}, 3);
  ASSERT_EQ(read.outputs().size(), 2u);
  EXPECT_EQ(read.layers()[static_cast<std::size_t>(read.outputs()[0])].name, "fc");
  EXPECT_EQ(values_of(read), values_of(network));
  EXPECT_NO_THROW(file.require_trainable());
}

// The values of a norm without parameters must not become parameters of the file.
TEST_F(OnnxExport, WritesConstantsAsConstants) {
  ModelMaker maker({2, 3, 8, 8});
  const std::string ones = maker.constant("ones", {3}, 1), zeros = maker.constant("zeros", {3}, 0);
  maker.node("BatchNormalization",
             {"x", ones, zeros, maker.weight("bn.running_mean", {3}), maker.weight("bn.running_var", {3})},
             "b");
  maker.node("InstanceNormalization", {"b", ones, zeros}, "i");
  maker.classify("i", 3);
  const Network network = maker.network();
  EXPECT_EQ(write_onnx(path, network, {}), network.parameter_count());
  for (const auto& [name, values] : onnx_import::read_onnx_file(path).initialisers)
    EXPECT_TRUE(name.find('/') != std::string::npos || name.starts_with("fc.") ||
                name.starts_with("bn.running"))
        << name;
  const Network read = ModelFile(path).network({2, 3, 8, 8}, 3);
  EXPECT_EQ(read.parameter_count(), network.parameter_count());
  EXPECT_EQ(values_of(read).size(), values_of(network).size());
}

TEST_F(OnnxExport, SaysThatBatchNormsAreFolded) {
  const Network network = two_heads();
  const std::int64_t parameters = write_onnx(path, network, {.fold_batch_norm = true, .metadata = {}});
  EXPECT_EQ(parameters, network.parameter_count() - 4) << "a bias in place of a weight and a bias";
  const ModelFile file(path);
  EXPECT_EQ(file.network({2, 3, 8, 8}, 3).parameter_count(), parameters);
  EXPECT_EQ(file.metadata().at("folded_batch_norms"), "1");
  EXPECT_THROW(file.require_trainable(), std::runtime_error);
}

}  // namespace
}  // namespace convoy::app
