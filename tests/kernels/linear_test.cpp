#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernels/weighted_layer.h"

namespace convoy::kernels::testing {
namespace {

Layer linear(Random& random, const Shape& x, std::int64_t outputs, bool bias, bool tf32 = false) {
  std::vector<Tensor> inputs = {random.uniform(x), random.uniform({outputs, x.elements() / x[0]})};
  if (bias) inputs.push_back(random.uniform({outputs}));
  return layer_of<LinearProblem>("linear " + x.to_string() + " to " + std::to_string(outputs),
                                 {.bias = bias, .tf32 = tf32}, linear_forward, linear_backward_data,
                                 linear_backward_weights, inputs, random.uniform({x[0], outputs}));
}

TEST(Linear, MatchesTheReference) {
  Random random(1);
  for (const Shape& x : {Shape{5, 37}, Shape{1, 16}, Shape{16, 128}, Shape{3, 20, 3, 5}, Shape{4, 32, 2, 2},
                         Shape{2, 48, 1, 1}, Shape{33, 3, 4, 4}})
    for (const std::int64_t outputs : {1, 10, 64, 101})
      expect_matches(linear(random, x, outputs, random.coin()), backends());
}

TEST(Linear, BackwardIsTheDerivative) {
  Random random(2);
  expect_gradients(linear(random, {3, 2, 2, 3}, 4, true));
  expect_gradients(linear(random, {2, 5}, 3, false));
}

// Backward must accept row_major weights, as a checkpoint has them, instead of the layout that
// forward chose.
TEST(Linear, TakesRowMajorWeights) {
  Random random(3);
  const Layer layer = linear(random, {4, 32, 3, 3}, 24, true);
  Case forward = layer.forward;
  forward.inputs[1].desc.layout = Layout::row_major;
  expect_matches_reference(forward);
  expect_matches_reference(layer.backward_data);
  Case weights = layer.backward_weights;
  weights.outputs[0].layout = Layout::row_major;
  expect_matches_reference(weights);
}

TEST(Linear, TakesTf32) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU";
  Random random(7);
  for (const Shape& x : {Shape{5, 37}, Shape{128, 256}, Shape{3, 20, 3, 5}})
    for (const std::int64_t outputs : {10, 64})
      expect_matches_in_tf32(linear(random, x, outputs, true, true));
}

TEST(Linear, RefusesWeightsThatDoNotFit) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request;
    request.inputs = {f32({2, 3, 2, 2}), f32({5, 11})};
    request.inputs[0].layout = Layout::row_major;
    request.outputs = {f32({2, 5})};
    EXPECT_THROW(linear_forward(backend, {.bias = false}, request), std::invalid_argument)
        << name_of(backend);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
