#include "kernels/pad/pad.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

const std::vector<PadProblem> kPads = {{1, 1, 1, 1},      {0, 1, 0, 1, 0.5f}, {2, 0, 0, 3, -1},
                                       {-1, 2, 1, -2, 7}, {-1, -1, -1, -1},   {0, 0, 0, 0}};

TEST(Pad, MatchesTheReference) {
  Random random(5);
  for (const PadProblem& problem : kPads)
    for (const Shape& shape : {Shape{2, 16, 5, 7}, Shape{3, 33, 4, 4}, Shape{1, 3, 4, 9}}) {
      const Shape y = pad_output_shape(problem, shape);
      expect_matches_reference(case_of("pad_forward", pad_forward, problem, {random.uniform(shape)}, y));
      expect_matches_reference(case_of("pad_backward", pad_backward, problem, {random.uniform(y)}, shape));
    }
}

TEST(Pad, PutsTheValueAroundTheImage) {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const PadProblem problem{.top = 1, .right = 1, .value = 9};
  EXPECT_EQ(run_reference(case_of("", pad_forward, problem, {x}, {1, 1, 3, 3})).outputs[0].values,
            (std::vector<double>{9, 9, 9, 1, 2, 9, 3, 4, 9}));
  EXPECT_THROW(pad_output_shape({.top = -2}, x.desc.shape), std::invalid_argument);
}

TEST(Pad, BackwardIsTheDerivative) {
  Random random(6);
  for (const PadProblem& problem : kPads) {
    const Shape shape{2, 2, 3, 4}, y = pad_output_shape(problem, shape);
    const Case forward = case_of("pad", pad_forward, problem, {random.uniform(shape)}, y);
    const Tensor dy = random.uniform(y);
    const Tensor dx = run_reference(case_of("", pad_backward, problem, {dy}, shape)).outputs[0];
    expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "pad");
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
