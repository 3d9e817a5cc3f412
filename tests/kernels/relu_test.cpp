#include "kernels/relu/relu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case relu(Tensor x) {
  const Shape shape = x.desc.shape;
  return {.name = "relu_forward " + shape.to_string(),
          .maker = [](Backend backend, KernelRequest& request) { return relu_forward(backend, {}, request); },
          .inputs = {std::move(x)},
          .outputs = {f32(shape)},
          .tolerance = 0};
}

Case relu_gradient(Tensor y, Tensor dy) {
  const Shape shape = y.desc.shape;
  return {
      .name = "relu_backward " + shape.to_string(),
      .maker = [](Backend backend, KernelRequest& request) { return relu_backward(backend, {}, request); },
      .inputs = {std::move(y), std::move(dy)},
      .outputs = {f32(shape)},
      .tolerance = 0};
}

TEST(Relu, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : kElementwiseShapes) {
    expect_matches_reference(relu(random.uniform(shape)));
    expect_matches_reference(relu_gradient(random.uniform(shape), random.uniform(shape)));
  }
}

TEST(Relu, BackwardIsTheDerivative) {
  Random random(2);
  const Case forward = relu(random.away_from_zero({2, 3, 3, 4}));
  const Tensor dy = random.uniform({2, 3, 3, 4});
  const Tensor y = run_reference(forward).outputs[0];
  const Tensor dx = run_reference(relu_gradient(floats(y.desc.shape, y.values), dy)).outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "relu");
}

// A NaN must stay a NaN, so that a run that diverges shows it. A careless max(NaN, 0) would give 0.
TEST(Relu, KeepsNaN) {
  Tensor x = Random(3).uniform({2, 40});
  x.values[17] = x.values[60] = std::numeric_limits<double>::quiet_NaN();
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    const Tensor y = run(backend, Layout::row_major, relu(x)).outputs[0];
    EXPECT_TRUE(std::isnan(y.values[17]) && std::isnan(y.values[60])) << name_of(backend);
    EXPECT_FALSE(std::isnan(y.values[18])) << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
