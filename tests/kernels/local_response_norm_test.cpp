// Tests local response normalisation.
#include "kernels/local_response_norm/local_response_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case normalised(const LocalResponseNormProblem& problem, Tensor x) {
  const Shape shape = x.desc.shape;
  return {.name = "local_response_norm_forward " + shape.to_string(),
          .maker = [=](Backend b,
                       KernelRequest& request) { return local_response_norm_forward(b, problem, request); },
          .inputs = {std::move(x)},
          .outputs = {f32(shape), {}},
          .ignored = {1},
          .tolerance = 1e-6};
}

Case gradient(const LocalResponseNormProblem& problem, Backend backend, Layout layout, const Case& forward,
              const Tensor& dy) {
  const Result result = run(backend, layout, forward);
  const Tensor y{f32(dy.desc.shape), result.outputs[0].values, {}};
  return {.name = "local_response_norm_backward " + dy.desc.shape.to_string(),
          .maker = [=](Backend b,
                       KernelRequest& request) { return local_response_norm_backward(b, problem, request); },
          .inputs = {forward.inputs[0], y, result.outputs[1], dy},
          .outputs = {f32(dy.desc.shape)},
          .tolerance = 2e-6};
}

// Large alphas make the scale matter. One window has an even size, so it is not symmetric. One
// exponent is not the usual 0.75.
const std::vector<LocalResponseNormProblem> kProblems = {{.alpha = 2, .k = 2},
                                                         {.size = 4, .alpha = 1},
                                                         {.size = 3, .alpha = 1, .beta = 0.6f},
                                                         {.size = 1, .alpha = 1}};

TEST(LocalResponseNorm, MatchesTheReference) {
  Random random(1);
  for (const auto& problem : kProblems)
    for (const Shape& shape :
         {Shape{2, 3, 5, 7}, Shape{1, 16, 4, 4}, Shape{2, 37, 3, 3}, Shape{1, 20, 13, 13}}) {
      const Case forward = normalised(problem, random.uniform(shape));
      expect_matches_reference(forward);
      const Tensor dy = random.uniform(shape);
      const Case expected = gradient(problem, Backend::reference, Layout::row_major, forward, dy);
      const Result dx = run_reference(expected);
      expect_in_place_equals(Backend::reference, Layout::row_major, expected, dx);
      for (const Backend b : backends())
        for (const Layout layout : layouts_of(b)) {
          const Case backward = gradient(problem, b, layout, forward, dy);
          const Result actual = run(b, layout, backward);
          expect_same(backward, actual, dx, name_of(b) + std::to_string(int(layout)));
          expect_in_place_equals(b, layout, backward, actual);
        }
    }
}

TEST(LocalResponseNorm, BackwardIsTheDerivative) {
  Random random(2);
  for (const auto& problem : kProblems) {
    const Case forward = normalised(problem, random.uniform({2, 7, 2, 2}));
    const Tensor dy = random.uniform({2, 7, 2, 2});
    const Result dx = run_reference(gradient(problem, Backend::reference, Layout::row_major, forward, dy));
    expect_gradient(dx.outputs[0].values, central_differences(forward, 0, {dy.values, {}}), forward.name);
  }
}

// The expected values are worked out by hand. alpha is divided by the size. A window of even size
// includes one more lower channel than higher channels.
TEST(LocalResponseNorm, KnownAnswers) {
  const LocalResponseNormProblem problem{.size = 2, .alpha = 2, .beta = 1, .k = 1};
  const Case test = normalised(problem, floats({1, 3, 1, 1}, {1, 2, 3}));
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const std::vector<double> y = run(b, Layout::row_major, test).outputs[0].values;
    EXPECT_FLOAT_EQ(y[0], 1.0f / 2);
    EXPECT_FLOAT_EQ(y[1], 2.0f / 6);
    EXPECT_FLOAT_EQ(y[2], 3.0f / 14);
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
