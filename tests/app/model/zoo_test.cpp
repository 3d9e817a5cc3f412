// Compares the networks of the zoo with published figures. An extra layer, a wrong stride or a
// missing bias would change a figure.
#include "app/model/zoo/zoo.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace convoy::app {
namespace {

Network square(const std::string& name, std::int64_t side, int classes) {
  return make_network(name, {1, 3, side, side}, classes);
}

// Returns the multiply-adds of convolutions and linear layers for one image, as papers count them.
double multiply_adds(const Network& network) {
  double flops = 0;
  for (const Layer& layer : network.layers()) {
    const auto shapes = network.input_shapes(layer);
    if (std::holds_alternative<Conv2d>(layer.op)) flops += std::get<Conv2d>(layer.op).flops(shapes);
    if (std::holds_alternative<Linear>(layer.op)) flops += std::get<Linear>(layer.op).flops(shapes);
  }
  return flops / 2;
}

std::string error_of(const std::string& name, const Shape& input, int classes = 10) {
  try {
    make_network(name, input, classes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

struct Published {
  const char* name;
  int side, classes;
  std::int64_t parameters, multiply_adds;
};

// The numbers of parameters are those of torchvision 0.14, and the multiply-adds were counted by
// hooks on its models. The figures of Wide ResNet and LeNet are from PyTorch models with the same
// layers, and those of other networks that torchvision lacks were computed by hand.
constexpr Published kPublished[] = {
    {"alexnet", 224, 1000, 61'100'840, 714'188'480},
    {"vgg16", 224, 1000, 138'357'544, 15'470'264'320},
    {"vgg16", 224, 10, 134'301'514, 15'470'264'320 - 990 * 4096},
    {"googlenet", 224, 1000, 6'624'904, 1'498'376'192},
    {"resnet18", 224, 1000, 11'689'512, 1'814'073'344},
    {"resnet18", 32, 10, 11'181'642, 37'016'576},
    {"resnet34", 224, 1000, 21'797'672, 3'663'761'408},
    {"resnet50", 224, 1000, 25'557'032, 4'089'184'256},
    {"resnet101", 224, 1000, 44'549'160, 7'801'405'440},
    {"resnet152", 224, 1000, 60'192'808, 11'513'626'624},
    {"resnext50_32x4d", 224, 1000, 25'028'904, 4'230'479'872},
    {"resnext101_32x8d", 224, 1000, 88'791'336, 16'414'015'488},
    {"vgg11", 224, 1000, 132'863'336, 7'609'090'048},
    {"vgg16_bn", 224, 1000, 138'365'992, 15'470'264'320},
    {"wide_resnet50_2", 224, 1000, 68'883'240, 11'398'021'120},
    {"squeezenet1_0", 224, 1000, 1'248'424, 818'924'576},
    {"squeezenet1_1", 224, 1000, 1'235'496, 349'151'936},
    {"inception_v3", 299, 1000, 23'834'568, 5'713'216'096},
    {"densenet121", 224, 1000, 7'978'856, 2'834'161'664},
    {"densenet169", 224, 1000, 14'149'480, 3'359'843'328},
    {"densenet201", 224, 1000, 20'013'928, 4'291'365'888},
    {"mobilenet_v2", 224, 1000, 3'504'872, 300'774'272},
    {"mobilenet_v3_small", 224, 1000, 2'542'856, 56'510'400},
    {"mobilenet_v3_large", 224, 1000, 5'483'032, 216'589'760},
    {"shufflenet_v2_x0_5", 224, 1000, 1'366'792, 40'476'448},
    {"shufflenet_v2_x1_0", 224, 1000, 2'278'604, 144'907'992},
    {"mnasnet0_5", 224, 1000, 2'218'512, 104'455'968},
    {"mnasnet1_0", 224, 1000, 4'383'312, 314'415'872},
    {"efficientnet_b0", 224, 1000, 5'288'548, 385'814'752},
    {"efficientnet_b1", 224, 1000, 7'794'184, 569'651'680},
    {"efficientnet_b2", 224, 1000, 9'109'994, 658'963'440},
    {"efficientnet_b3", 224, 1000, 12'233'232, 962'708'240},
    {"efficientnet_b4", 224, 1000, 19'341'616, 1'503'710'432},
    {"regnet_x_400mf", 224, 1000, 5'495'976, 413'812'608},
    {"regnet_y_400mf", 224, 1000, 4'344'144, 401'842'848},
    {"regnet_y_8gf", 224, 1000, 39'381'472, 8'473'070'592},
    {"convnext_tiny", 224, 1000, 28'589'128, 4'455'531'264},
    {"wrn28_10", 32, 10, 36'479'194, 5'243'328'768},
    {"wrn16_4", 32, 10, 2'748'890, 392'612'352},
    {"lenet", 32, 10, 2'156'490, 17'667'072},
    {"cifar10_quick", 32, 10, 145'578, 1024 * 2'400 + 256 * 25'600 + 64 * 51'200 + 65'536 + 640},
    {"mlp", 32, 10, 1'841'162, 1'840'128},
    {"linear", 32, 10, 30'730, 30'720}};

TEST(Zoo, ParametersAndOperationsAreThePublishedOnes) {
  for (const Published& expected : kPublished) {
    SCOPED_TRACE(fmt::format("{} on {} pixels, {} classes", expected.name, expected.side, expected.classes));
    const Network network = square(expected.name, expected.side, expected.classes);
    EXPECT_EQ(network.parameter_count(), expected.parameters);
    EXPECT_EQ(multiply_adds(network), static_cast<double>(expected.multiply_adds));
    EXPECT_EQ(network.layers().back().output, (Shape{1, expected.classes}));
  }
}

TEST(Zoo, SmallImageStemKeepsTheResolution) {
  // The counts are those of kuangliu's widely used ResNets for CIFAR, whose first convolution is
  // 3x3.
  EXPECT_EQ(square("resnet18_cifar", 32, 10).parameter_count(), 11'173'962);
  EXPECT_EQ(square("resnet50_cifar", 32, 10).parameter_count(), 23'520'842);
  EXPECT_EQ(multiply_adds(square("resnet18_cifar", 32, 10)), 555'422'720);
}

// Returns a hash of the lines "name shape" of all parameters, in the order of named_parameters() in
// torchvision.
std::uint64_t listing(const Network& network) {
  std::string text;
  for (const ParameterSpec& spec : network.parameters())
    text += fmt::format("{} {}\n", spec.name, spec.shape.to_string());
  return hash_of(text);
}

TEST(Zoo, ParametersAreNamedAndOrderedAsInTorchvision) {
  EXPECT_EQ(listing(square("alexnet", 224, 1000)), 0xe51f670ed71c74f0ull);
  EXPECT_EQ(listing(square("vgg16", 224, 1000)), 0xc3c36606220a7498ull);
  EXPECT_EQ(listing(square("googlenet", 224, 1000)), 0xc2638213699f8649ull);
  EXPECT_EQ(listing(square("resnet18", 224, 1000)), 0xd9a051f207ab3960ull);
  EXPECT_EQ(listing(square("resnet34", 224, 1000)), 0x31995404743a15bcull);
  EXPECT_EQ(listing(square("resnet50", 224, 1000)), 0xe46052d5a67a6ce1ull);
  EXPECT_EQ(listing(square("resnet101", 224, 1000)), 0x1def87991262ce50ull);
  EXPECT_EQ(listing(square("resnet152", 224, 1000)), 0x9b83d415feb25232ull);
  EXPECT_EQ(listing(square("resnext50_32x4d", 224, 1000)), 0x23e13481deb24f02ull);
  EXPECT_EQ(listing(square("resnext101_32x8d", 224, 1000)), 0xf3adb9e3ea37309full);
}

std::vector<std::string> concrete_names() {
  std::vector<std::string> names = network_names();
  for (std::string& name : names)
    if (name == "wrnDEPTH_WIDTH") name = "wrn10_1";
  return names;
}

TEST(Zoo, EveryNetworkTakesSmallAndLargeImagesOrSaysWhy) {
  for (const std::string& name : concrete_names()) {
    const Network large = make_network(name, {2, 3, 224, 224}, 7);
    EXPECT_EQ(large.layers().back().output, (Shape{2, 7})) << name;
    EXPECT_EQ(large.name(), name);
    if (name == "alexnet" || name.starts_with("vgg") || name == "inception_v3") continue;
    EXPECT_EQ(make_network(name, {3, 1, 32, 32}, 10).layers().back().output, (Shape{3, 10})) << name;
  }
}

TEST(Zoo, LayerNamesAreUnique) {
  for (const std::string& name : concrete_names()) {
    std::set<std::string> seen;
    const Network network = make_network(name, {1, 3, 224, 224}, 10);
    for (const Layer& layer : network.layers())
      EXPECT_TRUE(seen.insert(layer.name).second) << name << ": " << layer.name;
  }
}

const ParameterSpec& parameter(const std::vector<ParameterSpec>& specs, const std::string& name) {
  for (const ParameterSpec& spec : specs)
    if (spec.name == name) return spec;
  throw std::runtime_error("no parameter " + name);
}

void expect_initializer(const Network& network, const std::string& name, const Initializer& expected) {
  const auto specs = network.parameters();
  const Initializer& found = parameter(specs, name).initializer;
  EXPECT_EQ(found.kind, expected.kind) << network.name() << " " << name;
  EXPECT_NEAR(found.value, expected.value, 1e-12) << network.name() << " " << name;
}

TEST(Zoo, WeightsBeginAsInTheOriginals) {
  const Network resnet = square("resnet50", 224, 1000);
  expect_initializer(resnet, "conv1.weight", Initializer::normal(std::sqrt(2.0 / (64 * 49))));
  expect_initializer(resnet, "layer2.0.conv2.weight", Initializer::normal(std::sqrt(2.0 / (128 * 9))));
  expect_initializer(resnet, "layer2.0.bn3.weight", Initializer::constant(1));
  expect_initializer(resnet, "fc.weight", Initializer::uniform(1 / std::sqrt(2048.0)));
  expect_initializer(resnet, "fc.bias", Initializer::uniform(1 / std::sqrt(2048.0)));
  expect_initializer(square("resnext50_32x4d", 224, 1000), "layer1.0.conv2.weight",
                     Initializer::normal(std::sqrt(2.0 / (128 * 9))));
  const Network vgg = square("vgg16", 224, 1000);
  expect_initializer(vgg, "features.0.weight", Initializer::normal(std::sqrt(2.0 / (64 * 9))));
  expect_initializer(vgg, "features.0.bias", Initializer::constant(0));
  expect_initializer(vgg, "classifier.6.weight", Initializer::normal(0.01));
  expect_initializer(vgg, "classifier.6.bias", Initializer::constant(0));
  const Network alexnet = square("alexnet", 224, 1000);
  expect_initializer(alexnet, "features.3.weight", Initializer::uniform(1 / std::sqrt(64.0 * 25)));
  expect_initializer(alexnet, "features.3.bias", Initializer::uniform(1 / std::sqrt(64.0 * 25)));
  expect_initializer(square("googlenet", 224, 1000), "inception3a.branch2.1.conv.weight",
                     Initializer::normal(0.01));
  expect_initializer(square("cifar10_quick", 32, 10), "conv2.weight", Initializer::normal(0.01));
  expect_initializer(square("cifar10_quick", 32, 10), "ip1.weight", Initializer::normal(0.1));
}

TEST(Zoo, OnlyWeightsOfConvolutionsAndLinearLayersDecay) {
  for (const char* name : {"resnet18", "googlenet", "wrn10_1", "lenet"})
    for (const ParameterSpec& spec : square(name, 32, 10).parameters())
      EXPECT_EQ(spec.decay, spec.shape.rank() > 1) << spec.name;
}

TEST(Zoo, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(error_of("resnet19", {1, 3, 32, 32}),
            "unknown model \"resnet19\"; did you mean 'resnet18', 'resnet34' or 'resnet50'?");
  EXPECT_EQ(error_of("gogglenet", {1, 3, 32, 32}), "unknown model \"gogglenet\"; did you mean 'googlenet'?");
  EXPECT_NE(error_of("wr28_10", {1, 3, 32, 32}).find("did you mean 'wrn28_10'"), std::string::npos);
  EXPECT_NE(error_of("transformer", {1, 3, 32, 32}).find("expected one of linear, mlp, lenet"),
            std::string::npos);
}

TEST(Zoo, WideResnetsThatCannotBeAreRefused) {
  for (const char* name :
       {"wrn", "wrn28", "wrn28_", "wrn_10", "wrn28_10x", "wrnDEPTH_WIDTH", "wrn99999999999_1"})
    EXPECT_EQ(error_of(name, {1, 3, 32, 32}),
              fmt::format("unknown model \"{}\", expected wrnDEPTH_WIDTH such as wrn28_10", name));
  EXPECT_EQ(error_of("wrn27_10", {1, 3, 32, 32}),
            "model wrn27_10: its depth is 27, expected 6n + 4 up to 1000: 10, 16, 22, 28, 34, 40, …");
  EXPECT_NE(error_of("wrn999994_1", {1, 3, 32, 32}).find("its depth is 999994"), std::string::npos);
  EXPECT_NE(error_of("wrn4_1", {1, 3, 32, 32}).find("its depth is 4"), std::string::npos);
  EXPECT_NE(error_of("wrn28_0", {1, 3, 32, 32}).find("its width is 0"), std::string::npos);
  EXPECT_NE(error_of("wrn28_-3", {1, 3, 32, 32}).find("its width is -3"), std::string::npos);
}

TEST(Zoo, ImagesThatAreTooSmallNameTheLayer) {
  EXPECT_EQ(error_of("alexnet", {1, 3, 32, 32}),
            "network alexnet, layer features.12: its window of 3x3 does not fit into 1x256x1x1");
  EXPECT_NE(error_of("lenet", {1, 3, 2, 2}).find("network lenet, layer pool2"), std::string::npos);
  EXPECT_NE(error_of("vgg16", {1, 3, 16, 16}).find("network vgg16, layer features.30"), std::string::npos);
  EXPECT_NE(error_of("resnet18", {1, 3, 0, 32}).find("network resnet18: its input is 1x3x0x32"),
            std::string::npos);
  EXPECT_NE(error_of("linear", {1, 3}).find("expected images [N, C, H, W]"), std::string::npos);
  EXPECT_NE(error_of("resnet18", {1, 3, 32, 32}, 0).find("network resnet18, layer fc: has 0 outputs"),
            std::string::npos);
}

TEST(Zoo, AdaptiveAveragesNameTheSizesThatWork) {
  EXPECT_EQ(
      error_of("vgg16", {1, 3, 32, 32}),
      "network vgg16, layer avgpool: averages 1x512x1x1 to 7x7, expected a multiple of that: square input "
      "images with a side of 224 to 255 or 448 to 479 pixels");
  EXPECT_EQ(
      error_of("alexnet", {1, 3, 256, 256}),
      "network alexnet, layer avgpool: averages 1x256x7x7 to 6x6, expected a multiple of that: square input "
      "images with a side of 223 to 254 or 415 to 446 pixels");
  EXPECT_NE(error_of("vgg16", {1, 3, 224, 448}).find("layer avgpool"), std::string::npos);
  // The sizes that the message names must work, and the sizes next to them must not.
  for (const std::int64_t side : {223, 254, 415, 446})
    EXPECT_EQ(error_of("alexnet", {1, 3, side, side}), "no error") << side;
  for (const std::int64_t side : {222, 255, 414, 447})
    EXPECT_NE(error_of("alexnet", {1, 3, side, side}), "no error") << side;
  for (const std::int64_t side : {224, 255, 448, 479})
    EXPECT_EQ(error_of("vgg16", {1, 3, side, side}), "no error") << side;
  EXPECT_EQ(square("vgg16", 448, 10).parameter_count(), square("vgg16", 224, 10).parameter_count());
}

}  // namespace
}  // namespace convoy::app
