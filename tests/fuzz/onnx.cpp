// Defines the fuzz target for ONNX files without external data. It makes the file's network twice:
// as the file describes it, and for another image size and number of classes.
#include "tests/app/model/import/model_maker.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

using app::onnx_import::ModelMaker;

Bytes bytes_of(const ModelMaker& maker) {
  const std::string text = maker.model().SerializeAsString();
  return {text.begin(), text.end()};
}

Bytes convolutions() {
  ModelMaker maker({-1, 3, 9, 8});
  maker.integers("pads", {0, 0, 1, 0, 0, 0, 1, 1});
  maker.node("Pad", {"x", "pads"}, "p");
  maker.node("Conv", {"p", maker.weight("c.weight", {4, 3, 3, 3}), maker.weight("c.bias", {4})}, "c",
             {.lists = {{"strides", {2, 1}}, {"pads", {1, 1, 1, 1}}}});
  maker.node("BatchNormalization",
             {"c", maker.weight("n.w", {4}), maker.weight("n.b", {4}), maker.weight("n.m", {4}),
              maker.weight("n.var", {4})},
             "n");
  maker.node("Clip", {"n", maker.number("zero", 0), maker.number("six", 6)}, "k");
  maker.node("MaxPool", {"k"}, "m",
             {.integers = {{"ceil_mode", 1}}, .lists = {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}});
  maker.node("AveragePool", {"m"}, "a",
             {.lists = {{"kernel_shape", {2, 2}}}, .texts = {{"auto_pad", "VALID"}}});
  maker.classify("a", 4);
  return bytes_of(maker);
}

Bytes channels() {
  ModelMaker maker({-1, 6, 4, 4});
  maker.node("Shape", {"x"}, "shape");
  maker.node("Gather", {"shape", maker.integers("zero", {0})}, "n");
  maker.node("Concat", {"n", maker.integers("rest", {2, 3, 4, 4})}, "split", {.integers = {{"axis", 0}}});
  maker.node("Reshape", {"x", "split"}, "a");
  maker.node("Transpose", {"a"}, "b", {.lists = {{"perm", {0, 2, 1, 3, 4}}}});
  maker.node("Reshape", {"b", maker.integers("joined", {-1, 6, 4, 4})}, "c");
  maker.node("Split", {"c", maker.integers("parts", {2, 4})}, "s1", {.integers = {{"axis", 1}}});
  maker.graph().mutable_node(6)->add_output("s2");
  maker.node("Slice",
             {"s2", maker.integers("from", {-3}), maker.integers("to", {9}), maker.integers("axis", {1})},
             "tail");
  maker.node("Concat", {"tail", "s1"}, "cat", {.integers = {{"axis", 1}}});
  maker.classify("cat", 5);
  return bytes_of(maker);
}

Bytes gates() {
  ModelMaker maker({2, 4, 5, 5});
  maker.node("ReduceMean", {"x"}, "m", {.integers = {{"keepdims", 0}}, .lists = {{"axes", {2, 3}}}});
  maker.node("Gemm", {"m", maker.weight("g.weight", {4, 4})}, "g", {.integers = {{"transB", 1}}});
  maker.node("HardSigmoid", {"g"}, "h");
  maker.node("Unsqueeze", {"h", maker.integers("axes", {2, 3})}, "u");
  maker.node("Mul", {"x", "u"}, "s");
  maker.node("Sigmoid", {"s"}, "t");
  maker.node("Mul", {"t", "s"}, "v");
  maker.node("Mul", {"v", maker.weight("scale", {4, 1, 1})}, "w");
  maker.node("Add", {"w", "x"}, "z");
  maker.node("PRelu", {"z", maker.weight("slope", {4, 1, 1})}, "r");
  maker.classify("r", 4);
  return bytes_of(maker);
}

Bytes channels_last() {
  ModelMaker maker({2, 4, 3, 3});
  maker.number("root", 1.41421356f), maker.number("one", 1), maker.number("half", 0.5f),
      maker.number("two", 2), maker.number("eps", 1e-6f);
  maker.node("Transpose", {"x"}, "t", {.lists = {{"perm", {0, 2, 3, 1}}}});
  maker.node("ReduceMean", {"t"}, "m", {.lists = {{"axes", {-1}}}});
  maker.node("Sub", {"t", "m"}, "d");
  maker.node("Pow", {"d", "two"}, "q");
  maker.node("ReduceMean", {"q"}, "v", {.lists = {{"axes", {-1}}}});
  maker.node("Add", {"v", "eps"}, "ve");
  maker.node("Sqrt", {"ve"}, "sd");
  maker.node("Div", {"d", "sd"}, "n");
  maker.node("Mul", {"n", maker.weight("l.weight", {4})}, "lw");
  maker.node("Add", {"lw", maker.weight("l.bias", {4})}, "l");
  maker.node("MatMul", {"l", maker.weight("f.weight", {4, 4})}, "f");
  maker.node("Add", {maker.weight("f.bias", {4}), "f"}, "fb");
  maker.node("Div", {"fb", "root"}, "e0");
  maker.node("Erf", {"e0"}, "e1");
  maker.node("Add", {"e1", "one"}, "e2");
  maker.node("Mul", {"fb", "e2"}, "e3");
  maker.node("Mul", {"e3", "half"}, "g");
  maker.node("Transpose", {"g"}, "b", {.lists = {{"perm", {0, 3, 1, 2}}}});
  maker.classify("b", 4);
  return bytes_of(maker);
}

}  // namespace

bool run_onnx(std::span<const std::uint8_t> input) {
  return attempt([&] {
    const app::ModelFile file(app::onnx_import::parse_onnx(input, "fuzz.onnx", "/nowhere"));
    const app::Shape image = file.image();
    (void)file.network({3, image[0], image[1], image[2]}, file.classes());
    attempt([&] { (void)file.network({1, image[0], image[1] + 3, image[2] + 1}, file.classes() + 1); });
  });
}

std::vector<Bytes> onnx_seeds() { return {convolutions(), channels(), gates(), channels_last()}; }

}  // namespace convoy::data::fuzz
