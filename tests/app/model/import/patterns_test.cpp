// Model files write some operations as several nodes. Tests that such patterns of nodes become one
// layer, and that nodes which only look like a pattern do not.
#include <gtest/gtest.h>

#include "tests/app/model/import/model_maker.h"

namespace convoy::app::onnx_import {
namespace {

constexpr const char* kEnd = " pool linear";

class Patterns : public testing::Test {
 protected:
  // Returns the kinds of the layers that compute `value` from the image "x".
  std::string layers_to(const std::string& value, std::int64_t channels = 6) {
    maker.classify(value, channels);
    std::string all = kinds(maker.network());
    EXPECT_TRUE(all.ends_with(kEnd)) << all;
    return all.substr(0, all.size() - std::string(kEnd).size());
  }
  template <typename Op>
  const Op& op(const Network& network, std::size_t layer = 1) {
    return std::get<Op>(network.layers()[layer].op);
  }
  kernels::ActivationProblem activation() { return op<Activation>(maker.network()).function; }

  std::string mul(const std::string& a, const std::string& b, const std::string& to) {
    return maker.node("Mul", {a, b}, to);
  }
  std::string add(const std::string& a, const std::string& b, const std::string& to) {
    return maker.node("Add", {a, b}, to);
  }

  ModelMaker maker{{2, 6, 8, 8}};
};

using kernels::ActivationKind;

// The order of the terms decides the bits, so it must not depend on the size of the images. If they
// have one pixel, both terms have the same shape.
TEST_F(Patterns, AGateIsTheSecondTermForImagesOfEverySize) {
  for (const std::int64_t side : {8, 1})
    for (const char* op : {"Mul", "Add"})
      for (const bool gate_first : {true, false}) {
        maker = ModelMaker({2, 6, side, side});
        maker.node("Relu", {"x"}, "image");
        maker.node("GlobalAveragePool", {"image"}, "average");
        maker.node("Sigmoid", {"average"}, "gate");
        maker.node(op,
                   gate_first ? std::vector<std::string>{"gate", "image"}
                              : std::vector<std::string>{"image", "gate"},
                   "product");
        maker.classify("product", 6);
        EXPECT_EQ(maker.network().layers()[4].inputs, (std::vector<LayerId>{1, 3})) << op << " " << side;
      }
}

TEST_F(Patterns, AProductWithItsSigmoidIsSilu) {
  maker.node("Sigmoid", {"x"}, "s");
  EXPECT_EQ(layers_to(mul("s", "x", "a")), "activation");
  EXPECT_EQ(activation().kind, ActivationKind::silu);
}

TEST_F(Patterns, AProductWithAnotherSigmoidIsNone) {
  maker.node("Relu", {"x"}, "r");
  maker.node("Sigmoid", {"x"}, "s");
  EXPECT_EQ(layers_to(mul("r", "s", "a")), "relu activation multiply");
}

TEST_F(Patterns, HardSwishIsFoundInEachForm) {
  maker.node("HardSigmoid", {"x"}, "h", {.reals = {{"alpha", 1.0f / 6}, {"beta", 0.5f}}});
  mul("x", "h", "a");
  maker.number("three", 3), maker.number("six", 6), maker.number("zero", 0);
  maker.node("Clip", {add("three", "a", "a3"), "zero", "six"}, "c");
  mul("a", "c", "ac");
  maker.node("Div", {"ac", "six"}, "b");
  maker.node("Clip", {add("b", "three", "b3"), "zero", "six"}, "d");
  maker.node("Div", {"d", "six"}, "gate");
  EXPECT_EQ(layers_to(mul("gate", "b", "last")), "activation activation activation");
  for (const std::size_t layer : {1u, 2u, 3u})
    EXPECT_EQ(op<Activation>(maker.network(), layer).function.kind, ActivationKind::hard_swish);
}

TEST_F(Patterns, AnotherSlopeIsNoHardSwish) {
  maker.node("HardSigmoid", {"x"}, "h", {.reals = {{"alpha", 0.2f}, {"beta", 0.5f}}});
  EXPECT_EQ(layers_to(mul("x", "h", "a")), "activation multiply");
  EXPECT_EQ(activation().slope, 0.2f);
}

TEST_F(Patterns, GeluWithErfIsFoundWhateverTheOrderOfItsFactors) {
  for (const int order : {0, 1, 2}) {
    maker = ModelMaker({2, 6, 8, 8});
    maker.number("root", 1.41421356f), maker.number("one", 1), maker.number("half", 0.5f);
    maker.node("Div", {"x", "root"}, "d");
    maker.node("Erf", {"d"}, "e");
    add("e", "one", "sum");
    const std::string result = order == 0   ? mul(mul("x", "sum", "p"), "half", "g")
                               : order == 1 ? mul(mul("half", "x", "p"), "sum", "g")
                                            : mul("x", mul("sum", "half", "p"), "g");
    EXPECT_EQ(layers_to(result), "activation") << order;
    EXPECT_EQ(activation().kind, ActivationKind::gelu);
  }
}

// The input of a GELU may be a product itself. Its factors are not factors of the GELU.
TEST_F(Patterns, AGeluOfAProductIsFound) {
  for (const char* const op : {"Mul", "Div"})
    for (const bool tanh : {false, true}) {
      maker = ModelMaker({2, 6, 8, 8});
      maker.number("two", 2), maker.number("one", 1), maker.number("half", 0.5f), maker.number("three", 3);
      maker.number("root", 1.41421356f), maker.number("k", 0.044715f), maker.number("s", 0.7978845608f);
      maker.node(op, {"x", "two"}, "v");
      if (tanh) {
        maker.node("Pow", {"v", "three"}, "cube");
        mul("s", add("v", mul("k", "cube", "kc"), "inner"), "d");
      } else {
        maker.node("Div", {"v", "root"}, "d");
      }
      maker.node(tanh ? "Tanh" : "Erf", {"d"}, "e");
      maker.classify(mul(mul("v", add("e", "one", "sum"), "p"), "half", "g"), 6);
      const Network network = maker.network();
      EXPECT_EQ(this->op<Activation>(network, 1).function.slope, op == std::string("Mul") ? 2.0f : 0.5f);
      EXPECT_EQ(this->op<Activation>(network, 2).function.kind,
                tanh ? ActivationKind::gelu_tanh : ActivationKind::gelu);
    }
}

TEST_F(Patterns, ErfAloneIsRefused) {
  maker.node("Erf", {"x"}, "e");
  maker.classify("e", 6);
  EXPECT_NE(
      maker.error().find("net.onnx: node the_e (Erf): the operation is not supported; supported are Add, "),
      std::string::npos)
      << maker.error();
}

TEST_F(Patterns, OtherFormsOfGeluAreRefused) {
  maker.node("Gelu", {"x"}, "z", {.texts = {{"approximate", "fast"}}});
  maker.classify("z", 6);
  EXPECT_NE(maker.error().find("node the_z (Gelu): approximate is 'fast', expected none or tanh"),
            std::string::npos)
      << maker.error();
}

// A square and a cube are products like any other.
TEST_F(Patterns, GeluWithTanhIsFoundWithPowersAndWithProducts) {
  for (const bool power : {false, true}) {
    maker = ModelMaker({2, 6, 8, 8});
    maker.number("three", 3), maker.number("k", 0.044715f), maker.number("s", 0.7978845608f),
        maker.number("one", 1);
    maker.number("half", 0.5f);
    if (power)
      maker.node("Pow", {"x", "three"}, "cube");
    else
      mul(mul("x", "x", "square"), "x", "cube");
    mul("s", add("x", mul("k", "cube", "kc"), "inner"), "scaled");
    maker.node("Tanh", {"scaled"}, "t");
    EXPECT_EQ(layers_to(mul(mul("half", "x", "hx"), add("one", "t", "t1"), "g")), "activation");
    EXPECT_EQ(activation().kind, ActivationKind::gelu_tanh);
  }
}

TEST_F(Patterns, ALayerNormInPartsIsOneLayer) {
  maker.number("two", 2), maker.number("eps", 1e-6f);
  maker.node("ReduceMean", {"x"}, "m", {.lists = {{"axes", {1}}}});
  maker.node("Sub", {"x", "m"}, "d");
  maker.node("Pow", {"d", "two"}, "q");
  maker.node("ReduceMean", {"q"}, "v", {.lists = {{"axes", {1}}}});
  maker.node("Sqrt", {add("v", "eps", "ve")}, "sd");
  maker.node("Div", {"d", "sd"}, "n");
  mul(maker.weight("norm.weight", {6, 1, 1}), "n", "w");
  EXPECT_EQ(layers_to(add("w", maker.weight("norm.bias", {6, 1, 1}), "l")), "layer_norm");
  const Network network = maker.network();
  EXPECT_EQ(op<LayerNorm>(network).epsilon, 1e-6f);
  EXPECT_EQ(network.layers()[1].parameters[0].name, "norm.weight");
  EXPECT_EQ(network.layers()[1].parameters[0].file_shape, (Shape{6, 1, 1}));
}

TEST_F(Patterns, ALayerNormOverPixelsIsRefused) {
  maker.node("LayerNormalization", {"x", maker.weight("w", {8}), maker.weight("b", {8})}, "l",
             {.integers = {{"axis", -1}}});
  maker.classify("l", 6);
  EXPECT_EQ(maker.error(),
            "net.onnx: node the_l (LayerNormalization): normalises axis -1 of 2x6x8x8, expected the channels "
            "alone");
}

TEST_F(Patterns, AnInstanceNormOfGroupsIsGroupNorm) {
  maker.integers("groups", {0, 3, -1}), maker.integers("back", {2, 6, 8, 8});
  onnx::TensorProto* ones = maker.initialiser("ones", {3}, onnx::TensorProto::FLOAT);
  onnx::TensorProto* zeros = maker.initialiser("zeros", {3}, onnx::TensorProto::FLOAT);
  for (int i = 0; i < 3; ++i) ones->add_float_data(1), zeros->add_float_data(0);
  maker.node("Reshape", {"x", "groups"}, "r");
  maker.node("InstanceNormalization", {"r", "ones", "zeros"}, "i", {.reals = {{"epsilon", 1e-3f}}});
  maker.node("Reshape", {"i", "back"}, "b");
  mul("b", maker.weight("norm.weight", {6, 1, 1}), "w");
  EXPECT_EQ(layers_to(add("w", maker.weight("norm.bias", {6, 1, 1}), "g")), "group_norm");
  EXPECT_EQ(op<GroupNorm>(maker.network()).groups, 3);
  EXPECT_EQ(op<GroupNorm>(maker.network()).epsilon, 1e-3f);
}

TEST_F(Patterns, AShuffleOfChannelsIsOneLayerHoweverItsShapesAreGiven) {
  for (const bool from_shape : {false, true}) {
    maker = ModelMaker({from_shape ? -1 : 2, 6, 8, 8});
    if (from_shape) {
      maker.node("Shape", {"x"}, "shape");
      maker.node("Gather", {"shape", maker.integers("zero", {0})}, "n");
      maker.node("Concat", {"n", maker.integers("rest", {2, 3, 8, 8})}, "split", {.integers = {{"axis", 0}}});
      maker.integers("joined", {-1, 6, 8, 8});
    } else {
      maker.integers("split", {2, 2, 3, 8, 8}), maker.integers("joined", {2, -1, 8, 8});
    }
    maker.node("Reshape", {"x", "split"}, "a");
    maker.node("Transpose", {"a"}, "b", {.lists = {{"perm", {0, 2, 1, 3, 4}}}});
    maker.node("Reshape", {"b", "joined"}, "c");
    EXPECT_EQ(layers_to("c"), "channel_shuffle");
    EXPECT_EQ(op<ChannelShuffle>(maker.network()).groups, 2);
  }
}

TEST_F(Patterns, AReshapeThatMixesPixelsAndChannelsIsRefusedWhereItIsRead) {
  maker.integers("other", {2, 8, 6, 8});
  maker.node("Reshape", {"x", "other"}, "r");
  maker.classify("r", 8);
  EXPECT_EQ(
      maker.error(),
      "net.onnx: node the_r (Reshape): makes 2x8x6x8 of 2x6x8x8, which mixes samples, channels and pixels");
}

TEST_F(Patterns, ChannelsInTheLastPlaceNeedNoLayers) {
  maker.node("Transpose", {"x"}, "t", {.lists = {{"perm", {0, 2, 3, 1}}}});
  maker.node("LayerNormalization", {"t", maker.weight("n.weight", {6}), maker.weight("n.bias", {6})}, "l");
  maker.node("MatMul", {"l", maker.weight("m.weight", {6, 4})}, "m");
  add("m", maker.weight("m.bias", {4}), "mb");
  maker.node("Gelu", {"mb"}, "g");
  maker.node("Transpose", {"g"}, "back", {.lists = {{"perm", {0, 3, 1, 2}}}});
  EXPECT_EQ(layers_to("back", 4), "layer_norm conv2d activation");
  const Network network = maker.network();
  const auto& conv = network.layers()[2];
  EXPECT_EQ(conv.name, "m");
  EXPECT_EQ(conv.parameters[0].file_shape, (Shape{4, 6}));
  // The layer has the weight transposed: its element [0][1] is element [1][0] of the file.
  EXPECT_EQ((*conv.parameters[0].values)[1], 0.01f * 4 - 0.05f);
  EXPECT_EQ(conv.parameters[1].name, "m.bias");
}

TEST_F(Patterns, APadBecomesPartOfItsReaderOrALayer) {
  maker.integers("even", {0, 0, 1, 1, 0, 0, 1, 1}), maker.integers("uneven", {0, 0, 0, 1, 0, 0, 1, 0});
  maker.node("Pad", {"x", "even"}, "p");
  maker.node("Conv", {"p", maker.weight("c.weight", {6, 6, 3, 3})}, "c");
  maker.node("Pad", {"c", "even"}, "q");
  maker.node("AveragePool", {"q"}, "a", {.lists = {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}});
  maker.node("Pad", {"a", "uneven"}, "r");
  maker.node("MaxPool", {"r"}, "m", {.lists = {{"kernel_shape", {2, 2}}}});
  EXPECT_EQ(layers_to("m"), "conv2d pool pad pool");
  const Network network = maker.network();
  EXPECT_EQ(op<Conv2d>(network).padding, (std::array{1, 1}));
  EXPECT_EQ(op<Pool>(network, 2).padding, (std::array{1, 1}));
  EXPECT_TRUE(op<Pool>(network, 2).count_include_pad);
  EXPECT_EQ(op<Pad>(network, 3).amounts.left, 1);
  EXPECT_EQ(op<Pad>(network, 3).amounts.bottom, 1);
}

TEST_F(Patterns, SamePaddingThatIsUnevenIsALayer) {
  maker.node("Conv", {"x", maker.weight("c.weight", {6, 6, 3, 3})}, "c",
             {.lists = {{"strides", {2, 2}}}, .texts = {{"auto_pad", "SAME_UPPER"}}});
  EXPECT_EQ(layers_to("c"), "pad conv2d");
  const Network network = maker.network();
  EXPECT_EQ(op<Pad>(network).amounts.bottom, 1);
  EXPECT_EQ(op<Pad>(network).amounts.top, 0);
  EXPECT_EQ(network.layers()[2].output, (Shape{2, 6, 4, 4}));
}

TEST_F(Patterns, AClipWithoutAnUpperBoundIsARelu) {
  maker.node("Clip", {"x", maker.number("zero", 0)}, "c");
  EXPECT_EQ(layers_to("c"), "relu");
}

TEST_F(Patterns, NumbersThatChangeNothingAddNoLayers) {
  maker.number("zero", 0), maker.number("one", 1);
  maker.node("Relu", {mul("one", add("x", "zero", "a"), "b")}, "r");
  maker.node("Sub", {"r", "zero"}, "s");
  maker.node("Div", {"s", "one"}, "d");
  maker.node("Cast", {"d"}, "c", {.integers = {{"to", 1}}});
  maker.node("Identity", {"c"}, "i");
  EXPECT_EQ(layers_to("i"), "relu");
}

TEST_F(Patterns, WeightsForEachChannelAreLayers) {
  mul("x", maker.weight("scale", {6, 1, 1}), "s");
  EXPECT_EQ(layers_to(add(maker.weight("shift", {1, 6, 1, 1}), "s", "b")), "scale bias");
  const Network network = maker.network();
  EXPECT_EQ(network.layers()[1].parameters[0].name, "scale");
  EXPECT_EQ(network.layers()[2].parameters[0].name, "shift");
}

TEST_F(Patterns, ChannelsAreSplitSlicedAndTaken) {
  maker.node("Split", {"x", maker.integers("parts", {2, 4})}, "s1", {.integers = {{"axis", 1}}});
  maker.graph().mutable_node(0)->add_output("s2");
  maker.node("Slice",
             {"s2", maker.integers("from", {-3}), maker.integers("to", {9223372036854775807}),
              maker.integers("axis", {1})},
             "tail");
  maker.node("Gather", {"s1", maker.integers("first", {1})}, "one", {.integers = {{"axis", 1}}});
  maker.node("Concat", {"tail", "one"}, "joined", {.integers = {{"axis", -3}}});
  EXPECT_EQ(layers_to("joined", 4), "slice slice slice slice concat");
  const Network network = maker.network();
  EXPECT_EQ(op<Slice>(network, 3).begin, 1);
  EXPECT_EQ(op<Slice>(network, 3).count, 3);
  EXPECT_EQ(op<Slice>(network, 4).begin, 1);
}

TEST_F(Patterns, AMeanOverPixelsIsAPool) {
  maker.node("ReduceMean", {"x", maker.integers("axes", {-1, -2})}, "m", {.integers = {{"keepdims", 0}}});
  maker.node("Gemm", {"m", maker.weight("fc.weight", {6, 3})}, "y");
  EXPECT_EQ(kinds(maker.network()), "pool linear");
}

}  // namespace
}  // namespace convoy::app::onnx_import
