#include "kernels/prelu/prelu.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case prelu(Tensor x, Tensor slope) {
  const Shape shape = x.desc.shape;
  return {
      .name = "prelu_forward " + shape.to_string() + " slope " + slope.desc.shape.to_string(),
      .maker = [](Backend backend, KernelRequest& request) { return prelu_forward(backend, {}, request); },
      .inputs = {std::move(x), std::move(slope)},
      .outputs = {f32(shape)},
      .tolerance = 2e-7};
}

Case prelu_gradient(Tensor x, Tensor slope, Tensor dy) {
  const Shape shape = x.desc.shape, slopes = slope.desc.shape;
  return {
      .name = "prelu_backward " + shape.to_string() + " slope " + slopes.to_string(),
      .maker = [](Backend backend, KernelRequest& request) { return prelu_backward(backend, {}, request); },
      .inputs = {std::move(x), std::move(slope), std::move(dy)},
      .outputs = {f32(shape), f32(slopes)},
      .tolerance = 2e-6};
}

TEST(Prelu, MatchesTheReference) {
  Random random(4);
  for (const Shape& shape :
       {Shape{2, 3, 5, 7}, Shape{2, 64, 28, 28}, Shape{3, 33, 1, 1}, Shape{5, 37}, Shape{300, 40}})
    for (const std::int64_t slopes : {shape[1], std::int64_t{1}}) {
      const Tensor slope = random.uniform({slopes});
      expect_matches_reference(prelu(random.uniform(shape), slope));
      expect_matches_reference(prelu_gradient(random.uniform(shape), slope, random.uniform(shape)));
    }
}

TEST(Prelu, BackwardIsTheDerivative) {
  Random random(5);
  for (const std::int64_t slopes : {3, 1}) {
    const Case forward = prelu(random.away_from_zero({2, 3, 2, 4}), random.uniform({slopes}));
    const Tensor dy = random.uniform({2, 3, 2, 4});
    const Result gradient = run_reference(prelu_gradient(forward.inputs[0], forward.inputs[1], dy));
    for (int i = 0; i < 2; ++i)
      expect_gradient(gradient.outputs[i].values, central_differences(forward, i, {dy.values}), "prelu");
  }
}

TEST(Prelu, RefusesAnotherNumberOfSlopes) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request{{f32({2, 3, 4, 4}), f32({2})}, {f32({2, 3, 4, 4})}};
    request.inputs[0].layout = Layout::row_major;
    EXPECT_THROW(prelu_forward(backend, {}, request), std::invalid_argument) << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
