#include "kernels/dropout/dropout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case dropout(const char* name, bool forward, float rate, Tensor x, bool whole_samples = false) {
  const Shape shape = x.desc.shape;
  Case test{.name = std::string(name) + shape.to_string(),
            .maker =
                [=](Backend backend, KernelRequest& request) {
                  const DropoutProblem problem{.rate = rate, .layer = 3, .whole_samples = whole_samples};
                  return forward ? dropout_forward(backend, problem, request)
                                 : dropout_backward(backend, problem, request);
                },
            .inputs = {std::move(x)},
            .outputs = {f32(shape)},
            .control = all_valid(shape[0]),
            .tolerance = 2e-7};
  test.control.seed = 11;
  test.control.step = 7;
  test.control.first_sample = 1000;
  return test;
}

TEST(Dropout, MatchesTheReference) {
  Random random(5);
  for (const Shape& shape : kElementwiseShapes)
    for (const float rate : {0.f, 0.3f, 0.5f}) {
      expect_matches_reference(dropout("dropout_forward ", true, rate, random.uniform(shape)));
      expect_matches_reference(dropout("dropout_backward ", false, rate, random.uniform(shape)));
      expect_matches_reference(
          dropout("dropout_forward of samples ", true, rate, random.uniform(shape), true));
    }
}

TEST(Dropout, BackwardIsTheDerivative) {
  Random random(6);
  const Case forward = dropout("dropout_forward ", true, 0.4f, random.uniform({2, 5, 3, 3}));
  const Tensor dy = random.uniform({2, 5, 3, 3});
  const Tensor dx = run_reference(dropout("dropout_backward ", false, 0.4f, dy)).outputs[0];
  expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), "dropout");
}

// Tests stochastic depth: each sample is kept or dropped as a whole, three quarters are kept, and
// backward keeps the samples that forward kept.
TEST(Dropout, KeepsOrDropsWholeSamples) {
  const int samples = 4096;
  const Tensor ones = floats({samples, 3}, std::vector<double>(3 * samples, 1.0));
  const Tensor y = run_reference(dropout("", true, 0.25f, ones, true)).outputs[0];
  EXPECT_EQ(run_reference(dropout("", false, 0.25f, ones, true)).outputs[0].values, y.values);
  double kept = 0;
  for (int n = 0; n < samples; ++n) {
    const double value = y.values[3 * n];
    EXPECT_TRUE(value == 0 || value == static_cast<double>(1 / 0.75f)) << value;
    EXPECT_TRUE(y.values[3 * n + 1] == value && y.values[3 * n + 2] == value) << "sample " << n;
    kept += value != 0;
  }
  EXPECT_NEAR(kept / samples, 0.75, 5 * 0.0068);  // within five standard deviations
}

TEST(Dropout, KeepsTheRightShareAndTheMean) {
  const int count = 1 << 16;
  Tensor ones = Random(7).uniform({4, count / 4}, 1, 1.0001);
  const Tensor y = run_reference(dropout("", true, 0.25f, ones)).outputs[0];
  double sum = 0, kept = 0;
  for (const double value : y.values) {
    sum += value;
    kept += value != 0;
  }
  // 65,536 elements are kept with probability 0.75. One standard deviation of the kept share is
  // sqrt(0.25 * 0.75 / 65536) = 0.0017.
  EXPECT_NEAR(kept / count, 0.75, 5 * 0.0017);
  EXPECT_NEAR(sum / count, 1, 5 * 0.0017 / 0.75);
}

// Two ranks with two samples each must get the same mask as one rank with all four samples. Another
// step, layer or seed must give another mask.
TEST(Dropout, MaskFollowsTheSampleNotTheRank) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    const Tensor x = Random(8).uniform({4, 64}, 1, 2);
    const Case whole = dropout("", true, 0.5f, x);
    const std::vector<double> y = run(backend, Layout::row_major, whole).outputs[0].values;
    Case second = dropout("", true, 0.5f, floats({2, 64}, {x.values.begin() + 128, x.values.end()}));
    second.control.first_sample += 2;
    EXPECT_EQ(run(backend, Layout::row_major, second).outputs[0].values,
              (std::vector<double>{y.begin() + 128, y.end()}));
    for (const auto change : {+[](Case& c) { ++c.control.step; }, +[](Case& c) { ++c.control.seed; }}) {
      Case other = whole;
      change(other);
      EXPECT_NE(run(backend, Layout::row_major, other).outputs[0].values, y);
    }
  }
  EXPECT_NE(dropout_key(1, 0), dropout_key(1, 1));
  EXPECT_NE(dropout_key(1, 1), dropout_key(2, 0));
}

}  // namespace
}  // namespace convoy::kernels::testing
