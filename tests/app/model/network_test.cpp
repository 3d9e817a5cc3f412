// Tests the output shapes of the basic layers, such as convolutions, pools and sums. A layer with
// wrong inputs or settings must be refused, and the message must name the network and the layer.
#include "app/model/network.h"

#include <gtest/gtest.h>

#include "app/graph/graph_builder.h"

namespace convoy::app {
namespace {

const Shape kImages{2, 6, 9, 8};

Shape shape_of(const LayerOp& op, const Shape& input = kImages) {
  Network network("net", input);
  return network.shape(network.add("layer", op, network.input()));
}

std::string error_of(const LayerOp& op, std::vector<LayerId> inputs = {0}, const Shape& images = kImages) {
  Network network("net", images);
  // The output of layer 1 is 2x6x5x4.
  network.add("half", Conv2d::square(6, 3, 2, 1), network.input());
  network.add("flat", Linear{6}, network.input());  // the output of layer 2 is 2x6
  try {
    network.add("layer", op, std::move(inputs));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Shapes, Convolution) {
  EXPECT_EQ(shape_of(Conv2d::square(4, 3, 1, 1)), (Shape{2, 4, 9, 8}));
  EXPECT_EQ(shape_of(Conv2d::square(4, 3, 2)), (Shape{2, 4, 4, 3}));
  EXPECT_EQ(shape_of(Conv2d{.filters = 4, .kernel = {1, 5}, .stride = {1, 2}, .padding = {0, 1}}),
            (Shape{2, 4, 9, 3}));
  EXPECT_EQ(shape_of(Conv2d{.filters = 4, .kernel = {3, 3}, .dilation = {3, 3}}), (Shape{2, 4, 3, 2}));
}

TEST(Shapes, ConvolutionParametersAndOperations) {
  const Conv2d grouped{.filters = 4, .kernel = {3, 2}, .groups = 2, .bias = true};
  const auto specs = grouped.parameters({&kImages, 1});
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].shape, (Shape{4, 3, 3, 2}));
  EXPECT_EQ(specs[1].shape, (Shape{4}));
  EXPECT_EQ(grouped.flops({&kImages, 1}), 2.0 * (2 * 4 * 7 * 7) * (3 * 3 * 2));
}

TEST(Shapes, Pools) {
  EXPECT_EQ(shape_of(Pool::max(3, 2)), (Shape{2, 6, 4, 3}));
  EXPECT_EQ(shape_of(Pool::max(3, 2, 0, true)), (Shape{2, 6, 4, 4}));
  EXPECT_EQ(shape_of(Pool::average(2, 2)), (Shape{2, 6, 4, 4}));
  EXPECT_EQ(shape_of(Pool::global()), (Shape{2, 6, 1, 1}));
}

TEST(Shapes, OthersKeepOrFlatten) {
  for (const LayerOp& op :
       {LayerOp{Relu{}}, LayerOp{BatchNorm{}}, LayerOp{Dropout{}}, LayerOp{LocalResponseNorm{}}})
    EXPECT_EQ(shape_of(op), kImages);
  EXPECT_EQ(shape_of(Linear{3}), (Shape{2, 3}));
  EXPECT_EQ(Linear{3}.parameters({&kImages, 1})[0].shape, (Shape{3, 6 * 9 * 8}));
  Network network("net", kImages);
  const LayerId narrow = network.add("narrow", Conv2d::square(1, 1), network.input());
  EXPECT_EQ(network.shape(network.add("concat", Concat{}, {narrow, network.input(), narrow})),
            (Shape{2, 8, 9, 8}));
  EXPECT_EQ(network.shape(network.add("add", Add{}, {0, 0, 0})), kImages);
}

TEST(ShapeErrors, Convolution) {
  EXPECT_EQ(
      error_of(Conv2d{.filters = 4, .groups = 4}),
      "network net, layer layer: 4 filters over 6 channels in 4 groups: expected multiples of the groups");
  EXPECT_NE(error_of(Conv2d{.filters = 4, .groups = 3}).find("4 filters over 6 channels in 3"),
            std::string::npos);
  EXPECT_NE(error_of(Conv2d{.filters = 6, .groups = 0}).find("in 0 groups"), std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(0, 3)).find("0 filters"), std::string::npos);
  EXPECT_EQ(error_of(Conv2d::square(4, 9)),
            "network net, layer layer: its 9x9 kernel does not fit into 2x6x9x8");
  EXPECT_NE(error_of(Conv2d{.filters = 4, .kernel = {3, 3}, .dilation = {1, 4}}).find("does not fit"),
            std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(4, 3, 0)).find("stride 0"), std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(4, 3, 1, -1)).find("padding -1"), std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(4, 0)).find("kernel 0"), std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(4, 1), {2}).find("layer layer: reads a tensor of shape 2x6"),
            std::string::npos);
  EXPECT_NE(error_of(Conv2d::square(4, 1), {0, 0}).find("reads 2 tensors, expected 1"), std::string::npos);
}

TEST(ShapeErrors, Pool) {
  EXPECT_EQ(error_of(Pool::max(9, 1)),
            "network net, layer layer: its window of 9x9 does not fit into 2x6x9x8");
  EXPECT_NE(error_of(Pool::average(3, 0)).find("stride 0"), std::string::npos);
  EXPECT_NE(error_of(Pool::max(2, 2, 2)).find("padding 2, window 2"), std::string::npos);
  EXPECT_NE(error_of(Pool::global(), {2}).find("expected images"), std::string::npos);
  EXPECT_NE(error_of(Pool::max(2, 2), {}).find("reads 0 tensors"), std::string::npos);
}

TEST(ShapeErrors, SumsAndConcatenations) {
  EXPECT_EQ(error_of(Add{}, {0, 1}),
            "network net, layer layer: adds 2x6x9x8 and 2x6x5x4, expected equal shapes");
  EXPECT_NE(error_of(Add{}, {0}).find("adds 1 tensors, expected two or more"), std::string::npos);
  EXPECT_EQ(error_of(Concat{}, {0, 1}),
            "network net, layer layer: joins 2x6x9x8 and 2x6x5x4, expected equal image sizes");
  EXPECT_NE(error_of(Concat{}, {0, 2}).find("2x6, expected images"), std::string::npos);
  EXPECT_NE(error_of(Concat{}, {}).find("joins nothing"), std::string::npos);
  EXPECT_NE(error_of(BatchNorm{}, {0, 1}).find("adds 2x6x5x4 to 2x6x9x8"), std::string::npos);
}

TEST(ShapeErrors, Others) {
  EXPECT_NE(error_of(BatchNorm{}, {}).find("network net, layer layer: reads 0 tensors"), std::string::npos);
  EXPECT_NE(error_of(BatchNorm{}, {0, 0, 0}).find("reads 3 tensors"), std::string::npos);
  EXPECT_NE(error_of(BatchNorm{}, {2}).find("expected images"), std::string::npos);
  EXPECT_NE(error_of(Linear{0}).find("network net, layer layer: has 0 outputs"), std::string::npos);
  EXPECT_NE(error_of(Linear{3}, {0, 0}).find("reads 2 tensors"), std::string::npos);
  EXPECT_NE(error_of(Relu{}, {}).find("reads 0 tensors"), std::string::npos);
  EXPECT_NE(error_of(Dropout{1.0f}).find("rate 1, expected 0 <= rate < 1"), std::string::npos);
  EXPECT_NE(error_of(Dropout{-0.1f}).find("rate -0.1"), std::string::npos);
  EXPECT_NE(error_of(LocalResponseNorm{4}).find("size 4, expected an odd number"), std::string::npos);
  EXPECT_NE(error_of(LocalResponseNorm{}, {2}).find("expected images"), std::string::npos);
}

TEST(NetworkErrors, NamesAndReferences) {
  Network network("net", kImages);
  network.add("one", Relu{}, network.input());
  EXPECT_THROW(network.add("one", Relu{}, network.input()), std::runtime_error);
  EXPECT_THROW(network.add("input", Relu{}, network.input()), std::runtime_error);
  for (const LayerId nowhere : {-1, 2}) EXPECT_THROW(network.add("two", Relu{}, nowhere), std::runtime_error);
  EXPECT_EQ(network.layers().size(), 2u) << "a refused layer must not remain in the network";
}

TEST(NetworkErrors, ALastLayerWithoutLogits) {
  Network network("net", kImages);
  network.add("conv", Conv2d::square(4, 1), network.input());
  try {
    build_step_graph(network, {});
    FAIL() << "images were taken for logits";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "network net: its output conv gives 2x4x9x8, expected logits [N, classes]");
  }
}

}  // namespace
}  // namespace convoy::app
