#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

TEST(Softmax, MatchesTheReference) {
  Random random(7);
  for (const Shape& shape : {Shape{5, 1000}, Shape{3, 37}, Shape{2, 16, 5, 7}, Shape{3, 33, 4, 4},
                             Shape{300, 8}, Shape{2, 24, 3, 3}}) {
    expect_matches_reference(case_of("softmax_forward", softmax_forward, SoftmaxProblem{},
                                     {random.uniform(shape, -150, 150)}, shape, 2e-6));
    expect_matches_reference(case_of("softmax_backward", softmax_backward, SoftmaxProblem{},
                                     {random.uniform(shape, 0, 1), random.uniform(shape)}, shape, 2e-6));
  }
}

TEST(Softmax, BackwardIsTheDerivative) {
  Random random(8);
  const Shape shape{2, 5, 2, 1};
  const Case forward = case_of("", softmax_forward, SoftmaxProblem{}, {random.uniform(shape, -2, 2)}, shape);
  const Tensor dy = random.uniform(shape), y = run_reference(forward).outputs[0];
  const Tensor dx =
      run_reference(case_of("", softmax_backward, SoftmaxProblem{}, {floats(shape, y.values), dy}, shape))
          .outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "softmax");
}

TEST(Softmax, SumsToOne) {
  const Tensor y = run_reference(case_of("", softmax_forward, SoftmaxProblem{},
                                         {Random(9).uniform({1, 50}, -100, 100)}, {1, 50}))
                       .outputs[0];
  double sum = 0;
  for (const double value : y.values) sum += value;
  EXPECT_NEAR(sum, 1, 1e-6);
}

}  // namespace
}  // namespace convoy::kernels::testing
