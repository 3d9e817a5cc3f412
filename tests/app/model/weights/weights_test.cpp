// Tests which weights of a file a network takes, and what the printed table says about weights that
// it does not take.
#include "app/model/weights/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "app/model/weights/foreign_names.h"
#include "app/model/zoo/zoo.h"

namespace convoy::app {
namespace {

Network small(int classes = 4, std::int64_t channels = 3) {
  Network net("small", {2, channels, 8, 8});
  const LayerId conv = net.add("conv", Conv2d::square(2, 1), net.input());
  const LayerId norm = net.add("bn", BatchNorm{}, conv);
  net.add("fc", Linear{classes}, net.add("pool", Pool::global(), norm));
  return net;
}

// Returns a tensor whose values count up from `first`.
Weight weight(const std::string& name, std::vector<std::int64_t> shape, float first = 1) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  std::vector<float> values(static_cast<std::size_t>(elements));
  std::iota(values.begin(), values.end(), first);
  return {name, std::move(shape), [values] { return values; }};
}

std::vector<Weight> weights_of_small() {
  return {weight("conv.weight", {2, 3, 1, 1}),
          weight("bn.weight", {2}),
          weight("bn.bias", {2}),
          weight("bn.running_mean", {2}),
          weight("bn.running_var", {2}),
          weight("bn.num_batches_tracked", {}),
          weight("fc.weight", {4, 2}),
          weight("fc.bias", {4})};
}

const std::vector<float>* values_of(const Network& network, const std::string& name) {
  for (const Layer& layer : network.layers())
    for (const auto* specs : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *specs)
        if (spec.name == name) return spec.values.get();
  ADD_FAILURE() << name;
  return nullptr;
}

std::map<std::string, std::string> taken(Network& network, const std::vector<Weight>& weights,
                                         const WeightOptions& options = {"FILE", {}, false}) {
  const FitRows rows = take_weights(network, weights, options);
  return {rows.begin(), rows.end()};
}

using Rows = std::map<std::string, std::string>;

TEST(Weights, OfTheSameNetworkAreTakenWhole) {
  Network network = small();
  EXPECT_EQ(taken(network, weights_of_small()), (Rows{{"file", "FILE"}, {"taken", "7 of 7 tensors"}}));
  EXPECT_EQ(*values_of(network, "conv.weight"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(*values_of(network, "bn.running_var"), (std::vector<float>{1, 2}));
}

TEST(Weights, ThatDoNotFitAreListed) {
  Network network = small();
  std::vector<Weight> weights = weights_of_small();
  weights[1] = weight("bn.weight", {3});
  weights[2].name = "aux.bias";
  weights.push_back(weight("x", {1}));
  weights.push_back(weight("y", {1}));
  weights.push_back(weight("z", {1}));
  const Rows rows = taken(network, weights);
  EXPECT_EQ(rows.at("taken"), "5 of 7 tensors");
  EXPECT_EQ(rows.at("not in the file"), "bn.bias");
  EXPECT_EQ(rows.at("of another shape"), "bn.weight (3, here 2)");
  EXPECT_EQ(rows.at("not used"), "aux.bias, x, y and 1 more");
  EXPECT_EQ(values_of(network, "bn.weight"), nullptr);
}

std::string reason_without_match(Network network, const std::vector<Weight>& weights,
                                 bool redraw_head = false) {
  try {
    taken(network, weights, {"FILE", {}, redraw_head});
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(Weights, ThatAreNotFiniteOrNegativeVariancesAreAnError) {
  std::vector<Weight> weights = weights_of_small();
  weights[0].values = [] { return std::vector<float>{1, 2, 3, 4, std::nanf(""), 6}; };
  EXPECT_EQ(reason_without_match(small(), weights),
            "FILE: tensor 'conv.weight': found nan at index 4, expected finite numbers");
  weights = weights_of_small();
  weights[4] = weight("bn.running_var", {2}, -1);
  EXPECT_EQ(reason_without_match(small(), weights),
            "FILE: tensor 'bn.running_var': found -1 at index 0, expected variances of at least 0");
}

// A checkpoint holds constants of the network, too, but they stay as they are.
TEST(Weights, LeaveConstantsAsTheyAre) {
  Network network = small();
  for (const char* key : {"weight", "bias"}) {
    ParameterSpec& spec = network.parameter(2, key);
    spec.constant = true;
    spec.values = std::make_shared<const std::vector<float>>(2, 9.0f);
  }
  EXPECT_EQ(taken(network, weights_of_small()), (Rows{{"file", "FILE"}, {"taken", "5 of 5 tensors"}}));
  EXPECT_EQ(*values_of(network, "bn.weight"), (std::vector<float>{9, 9}));
}

TEST(Weights, OfNoFittingNameAreAnError) {
  EXPECT_EQ(
      reason_without_match(small(), {weight("encoder.weight", {4})}),
      "FILE: none of its 1 tensors fits small: found names such as 'encoder.weight', expected some such "
      "as 'conv.weight'");
  EXPECT_EQ(
      reason_without_match(small(), {weight("fc.weight", {5, 2}), weight("encoder.weight", {4})}),
      "FILE: none of its 2 tensors fits small: found names such as 'encoder.weight', expected some such "
      "as 'conv.weight'");
}

TEST(Weights, OfOtherClassesOrShapesAreNoQuestionOfNames) {
  Network head("head", {2, 3, 2, 2});
  head.add("fc", Linear{4}, head.input());
  const std::string start = "FILE: none of its 2 tensors fits head: ",
                    only_head = start + "only names of the last layer fit, and fc is drawn",
                    advice = "; expected a file with the same classes, or no --init";
  const std::vector<Weight> three{weight("fc.weight", {3, 12}), weight("fc.bias", {3})},
      four{weight("fc.weight", {4, 12}), weight("fc.bias", {4})};
  EXPECT_EQ(reason_without_match(head, three), only_head + " for 4 classes: the file has 3" + advice);
  EXPECT_EQ(reason_without_match(head, four, true), only_head + ": the file's classes are others" + advice);
  EXPECT_EQ(
      reason_without_match(small(), {weight("conv.weight", {2, 3, 3, 3}), weight("bn.bias", {5})}),
      "FILE: none of its 2 tensors fits small: found other shapes: conv.weight (2x3x3x3, here 2x3x1x1), "
      "bn.bias (5, here 2)");
  EXPECT_EQ(reason_without_match(head, four), "");
}

TEST(Weights, OfAnotherNumberOfClassesLeaveTheHeadDrawn) {
  Network network = small(7);
  const Rows rows = taken(network, weights_of_small());
  EXPECT_EQ(rows.at("head"), "fc is drawn for 7 classes: the file has 4");
  EXPECT_EQ(rows.at("taken"), "5 of 7 tensors");
  EXPECT_EQ(rows.count("of another shape"), 0u);
  EXPECT_EQ(values_of(network, "fc.weight"), nullptr);
  EXPECT_NE(values_of(network, "conv.weight"), nullptr);
}

TEST(Weights, OfTheHeadFollowTheClasses) {
  Network network = small();
  taken(network, weights_of_small(), {"FILE", {3, 2, 1, 0}, false});
  EXPECT_EQ(*values_of(network, "fc.weight"), (std::vector<float>{7, 8, 5, 6, 3, 4, 1, 2}));
  EXPECT_EQ(*values_of(network, "fc.bias"), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(*values_of(network, "bn.bias"), (std::vector<float>{1, 2}));
  Network other = small();
  EXPECT_EQ(taken(other, weights_of_small(), {"FILE", {}, true}).at("head"),
            "fc is drawn: the file's classes are others");
  EXPECT_EQ(values_of(other, "fc.bias"), nullptr);
}

TEST(Weights, OfTheFirstConvolutionFitAnyNumberOfChannels) {
  Network grey = small(4, 1), wide = small(4, 5);
  EXPECT_EQ(taken(grey, weights_of_small()).at("channels"),
            "conv.weight for 1 channels sums those of the file's 3");
  EXPECT_EQ(*values_of(grey, "conv.weight"), (std::vector<float>{6, 15}));
  taken(wide, weights_of_small());
  const std::vector<float> expected{0.6f, 1.2f, 1.8f, 0.6f, 1.2f, 2.4f, 3, 3.6f, 2.4f, 3};
  ASSERT_EQ(values_of(wide, "conv.weight")->size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR((*values_of(wide, "conv.weight"))[i], expected[i], 1e-6) << i;
  EXPECT_EQ(adapt_channels({3, 6, 9, 12}, 1, 3, 2), (std::vector<float>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(Weights, OfOneElementOrderFitWhateverTheirShape) {
  Network network = small();
  std::vector<Weight> weights = weights_of_small();
  weights[6] = weight("fc.weight", {4, 2, 1, 1});  // some files have a convolution as head
  weights[2] = weight("bn.bias", {2, 1, 1});
  EXPECT_EQ(taken(network, weights).at("taken"), "7 of 7 tensors");
  Network vgg = make_network("vgg11", {1, 3, 224, 224}, 10);
  EXPECT_EQ(taken(vgg, {weight("pre_logits.fc1.weight", {4096, 512, 7, 7})}).at("taken"), "1 of 22 tensors");
}

void expect_names(const std::string& model, const std::map<std::string, std::string>& pairs) {
  const Network network = make_network(model, {1, 3, 224, 224}, 10);
  std::vector<std::string> names, expected;
  for (const auto& [name, here] : pairs) names.push_back(name), expected.push_back(here);
  EXPECT_EQ(translated_names(names, network), expected) << model;
}

// The first name of each pair is that of timm 1.0, or of torchvision's file of DenseNet-121. It
// must be translated to our name, the second one.
TEST(ForeignNames, AreThoseOfTheSameTensors) {
  expect_names("resnet18",
               {{"module.layer1.0.conv1.weight", "layer1.0.conv1.weight"}, {"fc.bias", "fc.bias"}});
  expect_names("vgg16_bn", {{"features.0.weight", "features.0.weight"},
                            {"pre_logits.fc1.weight", "classifier.0.weight"},
                            {"pre_logits.fc2.bias", "classifier.3.bias"},
                            {"head.fc.weight", "classifier.6.weight"}});
  expect_names("densenet121", {{"features.denseblock2.denselayer12.norm.2.running_mean",
                                "features.denseblock2.denselayer12.norm2.running_mean"},
                               {"features.denseblock1.denselayer1.conv.1.weight",
                                "features.denseblock1.denselayer1.conv1.weight"}});
  expect_names("convnext_tiny", {{"stem.1.bias", "features.0.1.bias"},
                                 {"stages.0.blocks.2.conv_dw.weight", "features.1.2.block.0.weight"},
                                 {"stages.2.downsample.1.weight", "features.4.1.weight"},
                                 {"stages.3.blocks.0.gamma", "features.7.0.layer_scale"},
                                 {"stages.1.blocks.0.mlp.fc2.bias", "features.3.0.block.5.bias"},
                                 {"head.norm.weight", "classifier.0.weight"},
                                 {"head.fc.weight", "classifier.2.weight"}});
  expect_names("regnet_y_400mf", {{"stem.bn.weight", "stem.1.weight"},
                                  {"s4.b6.conv2.conv.weight", "trunk_output.block4.block4-5.f.b.0.weight"},
                                  {"s1.b1.se.fc2.bias", "trunk_output.block1.block1-0.f.se.fc2.bias"},
                                  {"s2.b1.downsample.bn.bias", "trunk_output.block2.block2-0.proj.1.bias"},
                                  {"head.fc.bias", "fc.bias"}});
  const std::string endless(100'000, 'x');
  EXPECT_EQ(translated_names({endless}, small()), std::vector{endless});
}

// timm numbers the blocks of a MobileNet anew in each stage. Our numbers must follow from the order
// of all layers. The list has all layers of mobilenetv2_100.
TEST(ForeignNames, OfMobileNetsFollowTheOrderOfTheLayers) {
  std::vector<std::string> names{"classifier.bias", "conv_stem.weight", "bn1.weight", "conv_head.weight",
                                 "bn2.running_var"};
  const auto block = [&](int stage, int number, std::initializer_list<const char*> layers) {
    for (const char* layer : layers)
      names.push_back("blocks." + std::to_string(stage) + "." + std::to_string(number) + "." + layer +
                      ".weight");
  };
  block(0, 0, {"bn2", "conv_pw", "conv_dw", "bn1"});
  const int counts[] = {1, 2, 3, 4, 3, 3, 1};
  for (int stage = 1; stage < 7; ++stage)
    for (int i = 0; i < counts[stage]; ++i)
      block(stage, i, {"bn1", "bn2", "bn3", "conv_dw", "conv_pw", "conv_pwl"});
  const auto here = translated_names(names, make_network("mobilenet_v2", {1, 3, 64, 64}, 10));
  std::map<std::string, std::string> of;
  for (std::size_t i = 0; i < names.size(); ++i) of[names[i]] = here[i];
  EXPECT_EQ(of["conv_stem.weight"], "features.0.0.weight");
  EXPECT_EQ(of["bn1.weight"], "features.0.1.weight");
  EXPECT_EQ(of["blocks.0.0.conv_dw.weight"], "features.1.conv.0.0.weight");
  EXPECT_EQ(of["blocks.0.0.bn2.weight"], "features.1.conv.2.weight");
  EXPECT_EQ(of["blocks.1.0.conv_pwl.weight"], "features.2.conv.2.weight");
  EXPECT_EQ(of["blocks.6.0.bn3.weight"], "features.17.conv.3.weight");
  EXPECT_EQ(of["bn2.running_var"], "features.18.1.running_var");
  EXPECT_EQ(of["classifier.bias"], "classifier.1.bias");
}

}  // namespace
}  // namespace convoy::app
