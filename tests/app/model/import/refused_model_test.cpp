// Tests the messages for model files that are refused.
#include "app/model/import/model_file.h"
#include "tests/app/model/import/imported_model.h"

namespace convoy::app::onnx_import {
namespace {

TEST_F(ImportedModel, RefusesDynamicImages) {
  maker = ModelMaker({-1, 3, -1, 8});
  conv_net();
  expect_error(
      "input x: its extent 2 is dynamic, but only the batch may be: export it for images of one size");
}

TEST_F(ImportedModel, RefusesExtentsThatAreNotPositive) {
  maker = ModelMaker({0, 3, 0, 8});
  conv_net();
  expect_error("input x: found the shape 2x3x0x8, expected positive extents");
  maker = ModelMaker({2, 3, 8, 8});
  conv_net();
  maker.graph().mutable_initializer(0)->set_dims(0, -4);
  expect_error("tensor conv.weight: found the shape -4x3x3x3, expected positive extents");
  maker = ModelMaker({0, 3, 8, 8});
  conv_net();
  EXPECT_EQ(maker.error(), "") << "an open batch";
}

TEST_F(ImportedModel, RefusesWhatIsNotAClassifierOfImages) {
  maker.node("Relu", {"x"}, "y");
  expect_error("output y: found the shape 2x3x8x8, expected logits [N, classes]");
  maker = ModelMaker({2, 3, 8});
  maker.node("Relu", {"x"}, "y");
  expect_error("input x: found the shape 2x3x8, expected images [N, C, H, W]");
}

TEST_F(ImportedModel, NamesOperationsThatAreNotSupported) {
  for (const auto& [op, kind] :
       {std::pair{"NonMaxSuppression", "detection networks"},
        std::pair{"Resize", "networks that give images"}, std::pair{"Attention", "transformers"},
        std::pair{"LSTM", "recurrent networks and control flow"},
        std::pair{"QLinearConv", "quantised networks"}}) {
    maker = ModelMaker({2, 3, 8, 8});
    maker.node(op, {"x"}, "z");
    maker.classify("z", 3);
    expect_error_with(std::string("node the_z (") + op + "): the operation is not supported (" + kind +
                      " are not: Convoy trains classifiers); supported are Add, AveragePool, ");
  }
  maker = ModelMaker({2, 3, 8, 8});
  maker.node("Relu", {"x"}, "z");
  maker.graph().mutable_node(0)->set_domain("com.example");
  maker.classify("z", 3);
  expect_error_with("node the_z (com.example.Relu): the operation is not supported; supported are ");
}

TEST_F(ImportedModel, RefusesAttention) {
  maker.node("Transpose", {"x"}, "t", {.lists = {{"perm", {0, 1, 3, 2}}}});
  maker.node("MatMul", {"x", "t"}, "m");
  maker.classify("m", 3);
  expect_error(
      "node the_m (MatMul): multiplies two values that are computed from the images, as attention does; "
      "Convoy trains convolutional networks");
}

// Other nodes come first, but the message must name the kind of network, which tells the user more
// than an error of the first node.
TEST_F(ImportedModel, SaysThatItIsATransformerOrRecurrentWhateverNodeComesFirst) {
  maker.node("Transpose", {"x"}, "t", {.lists = {{"perm", {1, 0, 2, 3}}}});
  maker.node("Softmax", {"t"}, "s", {.integers = {{"axis", -1}}});
  maker.node("Dropout", {"s"}, "d");
  maker.node("MatMul", {"d", "x"}, "m");
  maker.classify("m", 3);
  expect_error_with("node the_m (MatMul): multiplies by a Softmax, as the attention of transformers does");
  maker = ModelMaker({2, 1, 8, 8});
  maker.node("Gather", {"x", maker.integers("zero", {0})}, "g", {.integers = {{"axis", 1}}});
  maker.node("LSTM", {"g"}, "l");
  maker.classify("l", 1);
  expect_error_with(
      "node the_l (LSTM): the operation is not supported (recurrent networks and control flow are not");
}

struct Refused {
  std::string op;
  ModelMaker::Attributes attributes;
  std::string error;
};

TEST_F(ImportedModel, RefusesAttributesThatItCannotFollow) {
  for (const auto& [op, attributes, error] : std::vector<Refused>{
           {"MaxPool",
            {.lists = {{"kernel_shape", {2, 2}}, {"dilations", {2, 2}}}},
            "has dilations, which are not supported for pools"},
           {"MaxPool",
            {.lists = {{"kernel_shape", {2}}}},
            "kernel_shape has 1 extents, expected 2: only images are supported"},
           {"MaxPool",
            {.lists = {{"kernel_shape", {2, 2}}}, .texts = {{"auto_pad", "EVEN"}}},
            "auto_pad is 'EVEN', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
           {"Relu", {.integers = {{"slope", 1}}}, "attribute slope is not supported"},
           {"AveragePool",
            {.lists = {{"kernel_shape", {3, 3}}, {"pads", {0, 0, 1, 1}}}},
            "pads one side more than the other and leaves the padding out of its averages, which is not "
            "supported"},
           {"LogSoftmax",
            {.integers = {{"axis", 1}}},
            "is inside the network; expected it at the end, where the loss has it"},
           {"Softmax", {.integers = {{"axis", 3}}}, "is over axis 3 of 2x3x8x8, expected the channels"},
           {"Cast", {.integers = {{"to", 7}}}, "makes values of type 7, expected real numbers"},
           {"ReduceMean",
            {.lists = {{"axes", {1}}}},
            "reduces axes of 2x3x8x8 that are not the height and width of an image"},
           {"ReduceMean",
            {.lists = {{"axes", {0, 2, 3}}}},
            "reduces axes of 2x3x8x8 that are not the height and width of an image; a batch norm with "
            "track_running_stats=False does so, and is not supported"},
           {"LeakyRelu",
            {.integers = {{"alpha", 1}}},
            "attribute alpha is of another type, expected a real number"},
           {"Transpose", {.lists = {{"perm", {0, 1, 1, 2}}}}, "has a wrong order of the axes of 2x3x8x8"}}) {
    maker = ModelMaker({2, 3, 8, 8});
    maker.node(op, {"x"}, "z", attributes);
    maker.classify("z", 3);
    expect_error("node the_z (" + op + "): " + error);
  }
}

TEST_F(ImportedModel, RefusesConstantsThatAreNoWeights) {
  const auto expect_refused = [&](const char* op, std::vector<std::string> inputs, const std::string& error) {
    maker.node(op, std::move(inputs), "z");
    maker.classify("z", 3);
    expect_error_with(std::string("node the_z (") + op + "): " + error);
    maker = ModelMaker({2, 3, 8, 8});
  };
  expect_refused("Sub", {"x", maker.weight("means", {3, 1, 1})},
                 "has a constant of the shape 3x1x1 with an image of 2x3x8x8; expected a number");
  expect_refused("Div", {"x", maker.number("zero", 0)},
                 "has the constant 0, which gives results that are not finite");
  expect_refused("Div", {maker.number("one", 1), "x"}, "divides a constant, which is not supported");
}

TEST_F(ImportedModel, RefusesStepsAlongTheChannels) {
  maker.node("Slice",
             {"x", maker.integers("starts", {0}), maker.integers("ends", {3}), maker.integers("axes", {1}),
              maker.integers("steps", {2})},
             "s");
  maker.classify("s", 2);
  expect_error("node the_s (Slice): takes channels or samples in steps of 2, which is not supported");
}

TEST_F(ImportedModel, SaysHowToLeaveOutInceptionsTransform) {
  maker.node("Gather", {"x", maker.integers("zero", {0})}, "g", {.integers = {{"axis", 1}}});
  maker.classify("g", 1);
  expect_error_with("Export googlenet and inception_v3 with transform_input=False");
  maker = ModelMaker({2, 5, 8, 8});
  maker.node("Gather", {"x", maker.integers("zero", {0})}, "g", {.integers = {{"axis", 1}}});
  maker.classify("g", 1);
  EXPECT_EQ(maker.error().find("transform_input"), std::string::npos) << maker.error();
}

TEST_F(ImportedModel, RefusesWeightsOfOtherShapes) {
  maker.node("Conv", {"x", maker.weight("conv.weight", {4, 2, 3, 3})}, "c");
  maker.classify("c", 4);
  expect_error("node the_c (Conv): has weights of 4x2x3x3 in 1 groups for an image of 3 channels");
  maker = ModelMaker({2, 3, 8, 8});
  maker.node(
      "BatchNormalization",
      {"x", maker.weight("a", {3}), maker.weight("b", {4}), maker.weight("c", {3}), maker.weight("d", {3})},
      "n");
  maker.classify("n", 3);
  expect_error("node the_n (BatchNormalization): its bias has the shape 4, expected 3");
}

}  // namespace
}  // namespace convoy::app::onnx_import
