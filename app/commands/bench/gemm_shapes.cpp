#include "app/commands/bench/gemm_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "app/errors.h"

namespace convoy::app {

kernels::gemm::Problem GemmShape::problem(kernels::gemm::Math math) const {
  kernels::gemm::Problem problem;
  problem.math = math;
  problem.transpose_a = transpose_a;
  problem.transpose_b = transpose_b;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  const bool bf16 = math == kernels::gemm::Math::bf16 && !transpose_a;
  problem.output = bf16 ? kernels::DType::bf16 : kernels::DType::f32;
  return problem;
}

std::vector<GemmShape> listed_gemm_shapes() {
  constexpr std::array<std::int64_t, 3> kShapes[] = {
      {8000, 10000, 7840}, {8000, 100, 10000}, {8192, 8192, 8192}, {4096, 4096, 4096},  {800, 1000, 784},
      {802816, 64, 64},    {802816, 256, 64},  {802816, 64, 576},  {200704, 128, 1152}, {50176, 256, 2304},
      {12544, 512, 4608},  {12544, 2048, 512}, {50176, 1024, 256}};
  std::vector<GemmShape> shapes;
  for (const auto& [m, n, k] : kShapes) shapes.push_back({"listed", false, true, m, n, k});
  return shapes;
}

std::vector<GemmShape> gradient_gemm_shapes() {
  struct Layer {
    // The number of output pixels in the whole batch (`pixels`), of input channels (`in`), of
    // output channels (`out`), and of pixels in a filter (`filter`).
    std::int64_t pixels, in, out, filter;
  };
  constexpr std::int64_t k56 = 256 * 56 * 56, k28 = k56 / 4, k14 = k28 / 4, k7 = k14 / 4;
  // The first convolution of ResNet-50, its four stages, and its classifier.
  constexpr Layer kLayers[] = {
      {4 * k56, 3, 64, 49}, {k56, 64, 64, 1},   {k56, 64, 64, 9},    {k56, 64, 256, 1},   {k56, 256, 64, 1},
      {k56, 256, 128, 1},   {k28, 128, 128, 9}, {k28, 128, 512, 1},  {k28, 256, 512, 1},  {k28, 512, 128, 1},
      {k28, 512, 256, 1},   {k14, 256, 256, 9}, {k14, 256, 1024, 1}, {k14, 512, 1024, 1}, {k14, 1024, 256, 1},
      {k14, 1024, 512, 1},  {k7, 512, 512, 9},  {k7, 512, 2048, 1},  {k7, 1024, 2048, 1}, {k7, 2048, 512, 1},
      {256, 2048, 1000, 1}};
  std::vector<GemmShape> shapes;
  for (const Layer& layer : kLayers) {
    if (layer.in > 3)
      shapes.push_back({"gradients", false, false, layer.pixels, layer.in, layer.out * layer.filter});
    shapes.push_back({"gradients", true, false, layer.out, layer.in * layer.filter, layer.pixels});
  }
  return shapes;
}

GemmShape parse_gemm_shape(const std::string& text) {
  static const std::regex pattern("(?:([NT])([NT]):)?([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})");
  std::smatch match;
  if (!std::regex_match(text, match, pattern))
    throw UsageError(
        fmt::format("--shape: found '{}', expected MxNxK or AB:MxNxK with N or T for A and B", text));
  GemmShape shape{"given",
                  match[1] == "T",
                  match[2] != "N",
                  std::stoll(match[3]),
                  std::stoll(match[4]),
                  std::stoll(match[5])};
  if (std::min({shape.m, shape.n, shape.k}) < 1)
    throw UsageError(fmt::format("--shape: '{}' has a zero", text));
  return shape;
}

}  // namespace convoy::app
