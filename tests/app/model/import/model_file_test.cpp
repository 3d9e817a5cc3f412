// Tests networks of model files: the names of parameters, and other image sizes and numbers of
// classes than in the file.
#include "app/model/import/model_file.h"

#include <gtest/gtest.h>

#include "tests/app/model/import/imported_model.h"

namespace convoy::app::onnx_import {
namespace {

TEST_F(ImportedModel, KeepsTheFilesNamesAndValues) {
  conv_net();
  const Network network = maker.network();
  const auto parameters = network.parameters();
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[0].name, "conv.weight");
  EXPECT_EQ(parameters[1].name, "fc.weight");
  EXPECT_EQ(parameters[2].name, "fc.bias");
  EXPECT_EQ(network.layers()[1].name, "conv");
  EXPECT_EQ(network.layers()[3].name, "fc");
  for (const ParameterSpec& spec : parameters) ASSERT_EQ(std::ssize(*spec.values), spec.shape.elements());
  EXPECT_EQ((*parameters[0].values)[3], 0.01f * 3 - 0.05f);
}

TEST_F(ImportedModel, NamesLayersAfterTheModulesOfPyTorch) {
  maker.node("Relu", {"x"}, "a");
  maker.node("Relu", {"a"}, "b");
  maker.node("Relu", {"b"}, "c");
  maker.graph().mutable_node(0)->set_name("/layer1/layer1.0/relu/Relu");
  maker.graph().mutable_node(1)->set_name("/layer1/layer1.0/relu/Relu");
  maker.graph().mutable_node(2)->set_name("");
  maker.classify("c", 3);
  const Network network = maker.network();
  EXPECT_EQ(network.layers()[1].name, "layer1.0.relu");
  EXPECT_EQ(network.layers()[2].name, "layer1.0.relu_2");
  EXPECT_EQ(network.layers()[3].name, "relu");
}

TEST_F(ImportedModel, TakesOtherImagesAndClasses) {
  conv_net();
  const ModelFile file(maker.parse());
  EXPECT_EQ(file.image(), (Shape{3, 8, 8}));
  EXPECT_EQ(file.classes(), 3);
  const Network network = file.network({5, 3, 16, 12}, 7);
  EXPECT_EQ(network.layers()[1].output, (Shape{5, 4, 16, 12}));
  EXPECT_EQ(network.layers().back().output, (Shape{5, 7}));
  const auto parameters = network.parameters();
  EXPECT_NE(parameters[0].values, nullptr);
  EXPECT_EQ(parameters[1].name, "fc.weight");
  EXPECT_EQ(parameters[1].shape, (Shape{7, 4}));
  EXPECT_EQ(parameters[1].values, nullptr);
  ASSERT_EQ(network.notes().size(), 1u);
  EXPECT_EQ(network.notes()[0], "layer fc is drawn anew unless --init has it: it had 3 classes, now 7");
}

TEST_F(ImportedModel, SumsOrRepeatsTheChannelsOfItsFirstConvolution) {
  conv_net();
  const ModelFile file(maker.parse());
  const std::vector<float> old = *file.network({1, 3, 8, 8}, 3).parameters()[0].values;
  const Network grey = file.network({5, 1, 8, 8}, 3), wide = file.network({5, 6, 8, 8}, 3);
  ASSERT_EQ(grey.parameters()[0].shape, (Shape{4, 1, 3, 3}));
  ASSERT_EQ(wide.parameters()[0].shape, (Shape{4, 6, 3, 3}));
  const auto &sum = *grey.parameters()[0].values, &repeated = *wide.parameters()[0].values;
  ASSERT_EQ(sum.size(), 36u);
  ASSERT_EQ(repeated.size(), 216u);
  EXPECT_FLOAT_EQ(sum[9], old[27] + old[36] + old[45]);
  EXPECT_FLOAT_EQ(repeated[0], old[0] / 2);
  EXPECT_FLOAT_EQ(repeated[27], old[0] / 2);
  EXPECT_EQ(grey.notes(), std::vector<std::string>{"conv.weight for 1 channel sums those of the file's 3"});
  EXPECT_EQ(wide.notes(),
            std::vector<std::string>{"conv.weight for 6 channels repeats those of the file's 3"});
}

TEST_F(ImportedModel, RefusesOtherChannelsWithoutAFirstConvolution) {
  maker.node(
      "BatchNormalization",
      {"x", maker.weight("a", {3}), maker.weight("b", {3}), maker.weight("c", {3}), maker.weight("var", {3})},
      "n");
  maker.classify("n", 3);
  const ModelFile file(maker.parse());
  try {
    file.network({1, 1, 8, 8}, 3);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "net.onnx: layer the_n: its weight has the shape 3, but for these images it would be 1; the "
                 "file is for images of 3x8x8");
  }
}

TEST_F(ImportedModel, ForgetsItsValuesToDrawThemAnew) {
  conv_net();
  Network network = maker.network();
  network.reinitialise();
  for (const ParameterSpec& spec : network.parameters()) EXPECT_EQ(spec.values, nullptr);
}

TEST_F(ImportedModel, SaysWhichImagesItsLinearLayerIsFor) {
  maker.node("Flatten", {"x"}, "f");
  maker.node("Gemm", {"f", maker.weight("fc.weight", {3, 192}), maker.weight("fc.bias", {3})}, "y",
             {.integers = {{"transB", 1}}});
  const ModelFile file(maker.parse());
  EXPECT_NO_THROW(file.network({1, 3, 8, 8}, 3));
  try {
    file.network({1, 3, 16, 16}, 3);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "net.onnx: layer fc: its weight has the shape 3x192, but for these images it would be "
                 "3x768; the file is for images of 3x8x8");
  }
}

TEST_F(ImportedModel, RedrawsAHeadThatIsAConvolution) {
  conv("x", "c");
  maker.node("Relu", {"c"}, "r");
  maker.node("GlobalAveragePool", {"r"}, "p");
  maker.node("Flatten", {"p"}, "y");
  const ModelFile file(maker.parse());
  EXPECT_EQ(file.classes(), 4);
  const Network network = file.network({2, 3, 8, 8}, 9);
  EXPECT_EQ(network.layers().back().output, (Shape{2, 9}));
  EXPECT_EQ(network.parameters()[0].shape, (Shape{9, 3, 3, 3}));
}

TEST_F(ImportedModel, LeavesALastSoftmaxOutAndSaysSo) {
  conv("x", "c");
  maker.classify("c", 4);
  maker.graph().mutable_node(3)->set_output(0, "logits");
  maker.node("Softmax", {"logits"}, "y", {.integers = {{"axis", 1}}});
  const Network network = maker.network();
  EXPECT_EQ(kinds(network), "conv2d pool linear");
  ASSERT_EQ(network.notes().size(), 1u);
  EXPECT_EQ(network.notes()[0], "its last Softmax is left out: training and evaluation take logits");
}

TEST_F(ImportedModel, KeepsASoftmaxInsideTheNetwork) {
  maker.node("Softmax", {"x"}, "s", {.integers = {{"axis", 1}}});
  maker.classify("s", 3);
  EXPECT_EQ(kinds(maker.network()), "softmax pool linear");
}

TEST_F(ImportedModel, TakesEveryOutputThatIsAClassifier) {
  conv("x", "c");
  maker.node("GlobalMaxPool", {"c"}, "m");
  maker.node("Flatten", {"m"}, "mf");
  maker.node("Gemm", {"mf", maker.weight("aux.weight", {4, 3})}, "auxiliary");
  maker.classify("c", 4);
  maker.add_output("auxiliary");
  const ModelFile file(maker.parse());
  const Network network = file.network({2, 3, 8, 8}, 6);
  EXPECT_EQ(network.notes()[0],
            "of its outputs y, auxiliary only the first is used unless --loss-weights is given");
  ASSERT_EQ(network.outputs().size(), 2u);
  EXPECT_EQ(network.layers()[static_cast<std::size_t>(network.outputs()[0])].name, "fc");
  EXPECT_EQ(network.layers()[static_cast<std::size_t>(network.outputs()[1])].name, "aux");
  for (const LayerId output : network.outputs()) EXPECT_EQ(network.shape(output), (Shape{2, 6}));
}

TEST_F(ImportedModel, TakesTheFirstOutputIfTheOthersAreNoClassifiers) {
  conv("x", "c");
  maker.node("Einsum", {"c"}, "auxiliary");
  maker.classify("c", 4);
  maker.add_output("auxiliary");
  const Network network = maker.network();
  EXPECT_EQ(kinds(network), "conv2d pool linear");
  ASSERT_EQ(network.notes().size(), 1u);
  EXPECT_TRUE(network.notes()[0].starts_with(
      "of its 2 outputs only the first, y, is taken; the others: node the_auxiliary (Einsum): "))
      << network.notes()[0];
}

TEST_F(ImportedModel, BatchNormIsTrainableInEveryMode) {
  for (const std::int64_t outputs : {1, 3, 5}) {
    maker = ModelMaker({2, 3, 8, 8});
    maker.node("BatchNormalization",
               {"x", maker.weight("bn.weight", {3}), maker.weight("bn.bias", {3}),
                maker.weight("bn.running_mean", {3}), maker.weight("bn.running_var", {3})},
               "b",
               {.integers = {{"training_mode", outputs > 1 ? 1 : 0}},
                .reals = {{"epsilon", 1e-3f}, {"momentum", 0.7f}}});
    for (std::int64_t i = 1; i < outputs; ++i)
      maker.graph().mutable_node(0)->add_output("saved" + std::to_string(i));
    maker.classify("b", 3);
    const Network network = maker.network();
    EXPECT_EQ(kinds(network), "batch_norm pool linear");
    const auto& norm = std::get<BatchNorm>(network.layers()[1].op);
    EXPECT_EQ(norm.epsilon, 1e-3);
    EXPECT_EQ(norm.momentum, 0.3);
    EXPECT_EQ(network.layers()[1].states[1].name, "bn.running_var");
    EXPECT_NE(network.layers()[1].states[1].values, nullptr);
  }
}

TEST_F(ImportedModel, ACopyOfAnInitialiserIsAParameterOfItsOwn) {
  maker.weight("a", {3, 1, 1});
  maker.node("Identity", {"a"}, "b");
  maker.node("Mul", {"x", "a"}, "m");
  maker.node("Mul", {"m", "b"}, "n");
  maker.classify("n", 3);
  const auto parameters = maker.network().parameters();
  EXPECT_EQ(parameters[0].name, "a");
  EXPECT_EQ(parameters[1].name, "b");
}

TEST_F(ImportedModel, RefusesTiedWeights) {
  conv("x", "c");
  maker.node("Conv", {"x", "conv.weight"}, "d", {.lists = {{"pads", {1, 1, 1, 1}}}});
  maker.node("Add", {"c", "d"}, "s");
  maker.classify("s", 4);
  expect_error(
      "node the_d (Conv): shares its weight 'conv.weight' with node the_c (Conv); weights of two layers "
      "cannot be one");
}

std::string training_error(const ModelMaker& maker) {
  const ModelFile file(maker.parse());
  try {
    file.require_trainable();
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

constexpr const char* kFolded =
    "net.onnx: batch norms were folded into its convolutions at export, so they cannot be trained; export "
    "with torch.onnx.export(model, images, file, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False), from PyTorch 2.9 on also with dynamo=False";

TEST_F(ImportedModel, TrainsNoFoldedBatchNormAndSaysHowToExport) {
  for (const auto& [weight, bias] :
       {std::pair{"onnx::Conv_12", "onnx::Conv_13"}, std::pair{"conv1.weight", "conv1.weight_bias"}}) {
    maker = ModelMaker({2, 3, 8, 8});
    maker.node("Conv", {"x", maker.weight(weight, {4, 3, 3, 3}), maker.weight(bias, {4})}, "c");
    maker.classify("c", 4);
    EXPECT_EQ(training_error(maker), kFolded);
    EXPECT_EQ(maker.error(), "") << "it can be evaluated";
  }
}

// In an exported DenseNet, some batch norms are folded into the convolutions before them, and
// others remain. Training must be refused because of the folded ones.
TEST_F(ImportedModel, ABatchNormThatRemainsHidesNoFoldedOne) {
  maker.node("BatchNormalization",
             {"x", maker.weight("bn.weight", {3}), maker.weight("bn.bias", {3}), maker.weight("bn.mean", {3}),
              maker.weight("bn.var", {3})},
             "b");
  maker.node("Conv", {"b", maker.weight("onnx::Conv_1", {4, 3, 3, 3}), maker.weight("onnx::Conv_2", {4})},
             "c");
  maker.classify("c", 4);
  EXPECT_EQ(training_error(maker), kFolded);
}

TEST_F(ImportedModel, TrainsNoFileThatConvoyFolded) {
  conv_net();
  EXPECT_EQ(training_error(maker), "");
  maker.model().set_producer_name("convoy");
  onnx::StringStringEntryProto& entry = *maker.model().add_metadata_props();
  entry.set_key("folded_batch_norms");
  entry.set_value("1");
  EXPECT_EQ(training_error(maker),
            "net.onnx: its batch norms were folded into convolutions, so they cannot be trained; export with "
            "`convoy export` without --fold-batch-norm");
  EXPECT_EQ(maker.error(), "");
}

TEST_F(ImportedModel, TakesConvolutionsWithABiasOfTheirOwn) {
  maker.node("Conv", {"x", maker.weight("conv1.weight", {4, 3, 3, 3}), maker.weight("conv1.bias", {4})}, "c");
  maker.classify("c", 4);
  EXPECT_EQ(training_error(maker), "");
}

TEST_F(ImportedModel, TakesEverySecondRowAndColumn) {
  maker.node("Slice",
             {"x", maker.integers("starts", {1, 0}), maker.integers("ends", {8, 8}),
              maker.integers("axes", {2, 3}), maker.integers("steps", {2, 3})},
             "s");
  maker.classify("s", 3);
  const Network network = maker.network();
  EXPECT_EQ(kinds(network), "pad pool pool pool linear");
  EXPECT_EQ(network.layers()[3].output, (Shape{2, 3, 4, 3}));
}

TEST_F(ImportedModel, ArithmeticWithANumberIsAffine) {
  const auto function_of = [&](const char* op, bool number_first) {
    maker = ModelMaker({2, 3, 8, 8});
    maker.number("k", 4);
    maker.node(op, number_first ? std::vector<std::string>{"k", "x"} : std::vector<std::string>{"x", "k"},
               "z");
    maker.classify("z", 3);
    const auto function = std::get<Activation>(maker.network().layers()[1].op).function;
    EXPECT_EQ(function.kind, kernels::ActivationKind::affine);
    return std::pair(function.slope, function.offset);
  };
  for (const bool number_first : {false, true}) {
    EXPECT_EQ(function_of("Add", number_first), std::pair(1.0f, 4.0f));
    EXPECT_EQ(function_of("Mul", number_first), std::pair(4.0f, 0.0f));
  }
  EXPECT_EQ(function_of("Sub", false), std::pair(1.0f, -4.0f));
  EXPECT_EQ(function_of("Sub", true), std::pair(-1.0f, 4.0f));
  EXPECT_EQ(function_of("Div", false), std::pair(0.25f, 0.0f));
  EXPECT_EQ(maker.network().notes(),
            std::vector<std::string>{"k is one number for all channels: it stays 4 and is not trained"});
}

// With one channel, a number could also be a weight with a value for each channel.
TEST_F(ImportedModel, AComputedNumberIsNoWeightOfOneChannel) {
  for (const std::string name : {"/Constant_output_0", "onnx::Mul_3", "scale"}) {
    maker = ModelMaker({2, 1, 8, 8});
    maker.node("Mul", {"x", maker.number(name, 4)}, "z");
    maker.classify("z", 1);
    const Network network = maker.network();
    EXPECT_EQ(std::holds_alternative<Scale>(network.layers()[1].op), name == "scale") << name;
    EXPECT_TRUE(network.notes().empty()) << name;
  }
}

TEST_F(ImportedModel, StructureFollowsNodesAndNotWeights) {
  conv_net();
  const auto structure = [&] { return maker.network().file_structure(); };
  const std::string first = structure();
  maker.graph().mutable_initializer(0)->set_float_data(0, 5);
  EXPECT_EQ(structure(), first);
  maker.graph().mutable_node(0)->mutable_attribute(0)->set_ints(0, 2);
  EXPECT_NE(structure(), first);
}

}  // namespace
}  // namespace convoy::app::onnx_import
