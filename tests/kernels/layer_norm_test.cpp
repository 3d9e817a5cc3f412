#include "kernels/layer_norm/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/harness.h"
#include "tests/kernels/moments.h"

namespace convoy::kernels::testing {
namespace {

Case layer_norm(Tensor x, Tensor gamma, Tensor beta, float epsilon = 1e-3f) {
  const Shape shape = x.desc.shape;
  return {.name = "layer_norm_forward " + shape.to_string(),
          .maker = [=](Backend backend,
                       KernelRequest& request) { return layer_norm_forward(backend, {epsilon}, request); },
          .inputs = {std::move(x), std::move(gamma), std::move(beta)},
          .outputs = {f32(shape), f32(layer_norm_moments(shape))},
          .tolerance = 1e-6};
}

Case layer_norm_gradient(Tensor x, Tensor gamma, Tensor dy, Tensor moments) {
  const Shape shape = x.desc.shape, channels = gamma.desc.shape;
  return {.name = "layer_norm_backward " + shape.to_string(),
          .maker = [](Backend backend,
                      KernelRequest& request) { return layer_norm_backward(backend, {}, request); },
          .inputs = {std::move(x), std::move(gamma), std::move(dy), std::move(moments)},
          .outputs = {f32(shape), f32(channels), f32(channels)},
          .tolerance = 2e-6};
}

// Some shapes have rows that fit into registers, rows that are no multiple of 16 bytes, several
// rows per warp, or long images.
const std::vector<Shape> kShapes = {{2, 3, 5, 7}, {2, 96, 7, 7},   {3, 33, 4, 4},   {1, 192, 5, 3},
                                    {5, 37},      {4, 768, 2, 2},  {2, 16, 40, 33}, {1, 2056, 1, 3},
                                    {300, 40},    {1, 8, 3, 1000}, {2, 1500},       {2, 384, 3, 3}};

TEST(LayerNorm, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : kShapes) {
    const Tensor x = random.uniform(shape, -1, 3), gamma = random.uniform({shape[1]}, 0.5, 2);
    const Case forward = layer_norm(x, gamma, random.uniform({shape[1]}));
    expect_matches_reference(forward);
    expect_matches_reference(layer_norm_gradient(x, gamma, random.uniform(shape), moments_of(forward)));
  }
}

TEST(LayerNorm, BackwardIsTheDerivative) {
  Random random(2);
  const Shape shape{2, 5, 2, 3};
  const Case forward =
      layer_norm(random.uniform(shape, -2, 2), random.uniform({5}, 0.5, 2), random.uniform({5}));
  const Tensor dy = random.uniform(shape);
  const Result gradient =
      run_reference(layer_norm_gradient(forward.inputs[0], forward.inputs[1], dy, moments_of(forward)));
  for (int i = 0; i < 3; ++i)
    expect_gradient(gradient.outputs[i].values, central_differences(forward, i, {dy.values}), "layer_norm");
}

TEST(LayerNorm, NormalisesEveryPixel) {
  Random random(3);
  const Tensor ones = floats({40}, std::vector<double>(40, 1.0)),
               zeros = floats({40}, std::vector<double>(40));
  const Tensor y =
      run_reference(layer_norm(random.uniform({2, 40, 2, 2}, 3, 9), ones, zeros, 1e-6f)).outputs[0];
  for (int n = 0; n < 2; ++n)
    for (int pixel = 0; pixel < 4; ++pixel) {
      double sum = 0, squares = 0;
      for (int c = 0; c < 40; ++c) {
        const double value = y.values[(n * 40 + c) * 4 + pixel];
        sum += value / 40, squares += value * value / 40;
      }
      EXPECT_NEAR(sum, 0, 1e-6);
      EXPECT_NEAR(squares, 1, 1e-5);
    }
}

TEST(LayerNorm, RefusesVectorsOfAnotherLength) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request{{f32({2, 3, 4, 4}), f32({4}), f32({3})}, {f32({2, 3, 4, 4}), f32({64})}};
    request.inputs[0].layout = Layout::row_major;
    EXPECT_THROW(layer_norm_forward(backend, {}, request), std::invalid_argument) << name_of(backend);
  }
}

TEST(LayerNorm, KeepsTheVarianceFarFromZero) {
  expect_moments_far_from_zero(
      [](const Tensor& x, const Tensor& gamma, const Tensor& beta) { return layer_norm(x, gamma, beta); });
}

}  // namespace
}  // namespace convoy::kernels::testing
