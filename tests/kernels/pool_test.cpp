// Tests maximum and average pooling.
#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

Case pool(const PoolProblem& problem, Tensor x) {
  const Shape y = pool_output_shape(problem, x.desc.shape);
  Case test{.name = "pool_forward " + x.desc.shape.to_string() + " to " + y.to_string(),
            .maker = [=](Backend backend,
                         KernelRequest& request) { return pool_forward(backend, problem, request); },
            .inputs = {std::move(x)},
            .outputs = {f32(y)},
            .tolerance = 5e-7};
  if (problem.kind == PoolKind::max) {
    test.outputs.emplace_back();
    test.ignored = {1};
    test.tolerance = 0;
  }
  return test;
}

// Computes dx. Backward gets the auxiliary output (the places of the maxima) that the same
// backend's forward wrote.
Result backward(Backend backend, Layout layout, const PoolProblem& problem, const Case& forward,
                const Tensor& dy) {
  const Result result = run(backend, layout, forward);
  Case test{.name = "pool_backward of " + forward.name,
            .maker = [=](Backend b, KernelRequest& request) { return pool_backward(b, problem, request); },
            .inputs = {dy},
            .outputs = {f32(forward.inputs[0].desc.shape)}};
  if (problem.kind == PoolKind::max) test.inputs.insert(test.inputs.begin(), result.outputs[1]);
  return run(backend, layout, test);
}

void expect_backward_matches(const PoolProblem& problem, const Case& forward, const Tensor& dy) {
  const Tensor expected = backward(Backend::reference, Layout::row_major, problem, forward, dy).outputs[0];
  for (const Backend b : backends())
    for (const Layout layout : layouts_of(b))
      expect_close(backward(b, layout, problem, forward, dy).outputs[0], expected, 5e-7,
                   "pool_backward of " + forward.name + " in layout " + std::to_string(int(layout)));
}

std::vector<PoolProblem> problems(PoolKind kind) {
  return {{.kind = kind},
          {.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
          {.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true},
          {.kind = kind, .kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}, .ceil_mode = true},
          {.kind = kind, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .count_include_pad = false},
          {.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true},
          {.kind = kind,
           .kernel = {5, 4},
           .stride = {3, 2},
           .padding = {2, 1},
           .ceil_mode = true,
           .count_include_pad = false},
          {.kind = kind, .kernel = {2, 2}, .stride = {3, 3}}};
}

const std::vector<Shape> kShapes = {{2, 3, 9, 7}, {1, 16, 8, 8}, {3, 33, 7, 12}, {2, 20, 17, 17}};

TEST(Pool, MatchesTheReference) {
  Random random(1);
  for (const PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolProblem& problem : problems(kind))
      for (const Shape& shape : kShapes) {
        const Case forward = pool(problem, random.uniform(shape));
        expect_matches_reference(forward);
        expect_backward_matches(problem, forward, random.uniform(forward.outputs[0].shape));
      }
}

TEST(Pool, GlobalMatchesTheReference) {
  Random random(2);
  for (const PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const Shape& shape : {Shape{2, 37, 7, 7}, Shape{3, 16, 4, 9}, Shape{1, 5, 20, 20}}) {
      const PoolProblem problem{.kind = kind, .kernel = {int(shape[2]), int(shape[3])}, .stride = {1, 1}};
      const Case forward = pool(problem, random.uniform(shape));
      EXPECT_EQ(forward.outputs[0].shape, (Shape{shape[0], shape[1], 1, 1}));
      expect_matches_reference(forward);
      expect_backward_matches(problem, forward, random.uniform(forward.outputs[0].shape));
    }
}

TEST(Pool, BackwardIsTheDerivative) {
  Random random(3);
  for (const PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const PoolProblem& problem : problems(kind)) {
      const Case forward = pool(problem, random.distinct({1, 2, 6, 7}));
      const Tensor dy = random.uniform(forward.outputs[0].shape);
      const Tensor dx = backward(Backend::reference, Layout::row_major, problem, forward, dy).outputs[0];
      expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), forward.name);
    }
}

// A fused ReLU must give the bits of a ReLU after the pool, even for windows without a positive
// value. The auxiliary output (the places of the maxima) must stay the same.
TEST(Pool, FusedReluIsThatOfTheMaximum) {
  Random random(5);
  for (PoolProblem problem : problems(PoolKind::max))
    for (const Shape& shape : kShapes) {
      Tensor x = random.uniform(shape);
      for (double& value : x.values) value = float(value - 0.7);
      x.values[0] = std::numeric_limits<double>::quiet_NaN();
      const Case plain = pool(problem, x);
      problem.relu = true;
      const Case fused = pool(problem, x);
      for (const Backend b : backends())
        for (const Layout layout : layouts_of(b)) {
          const Result before = run(b, layout, plain), after = run(b, layout, fused);
          int zeroes = 0;
          for (std::size_t i = 0; i < before.outputs[0].values.size(); ++i) {
            const double maximum = before.outputs[0].values[i], rectified = after.outputs[0].values[i];
            if (std::isnan(maximum))
              EXPECT_TRUE(std::isnan(rectified));
            else
              EXPECT_EQ(rectified, std::max(maximum, 0.0));
            zeroes += rectified == 0;
          }
          EXPECT_GT(zeroes, 0) << plain.name;
          EXPECT_EQ(before.outputs[1].values, after.outputs[1].values);
        }
      problem.relu = false;
    }
}

// After a ReLU many maxima are equal (zero). Every backend must give the gradient to the first of
// the equal maxima only.
TEST(Pool, FirstOfEqualMaximaGetsTheGradient) {
  const PoolProblem problem{.kernel = {2, 2}, .stride = {2, 2}};
  const Case forward = pool(problem, floats({1, 1, 2, 4}, {0, 0, 1, 5, 0, 0, 5, 5}));
  const Tensor dy = floats({1, 1, 1, 2}, {3, 4});
  for (const Backend b : {Backend::reference, Backend::cpu})
    for (const Layout layout : layouts_of(b))
      EXPECT_EQ(backward(b, layout, problem, forward, dy).outputs[0].values,
                (std::vector<double>{3, 0, 0, 4, 0, 0, 0, 0}));
}

TEST(Pool, MaximumKeepsNaN) {
  Tensor x = Random(4).uniform({1, 3, 4, 4});
  // One NaN is the first value of its window, the other NaN is the last.
  x.values[0] = std::numeric_limits<double>::quiet_NaN();
  x.values[7] = std::numeric_limits<double>::quiet_NaN();
  for (const Backend b : {Backend::reference, Backend::cpu})
    for (const Layout layout : layouts_of(b)) {
      const Tensor y = run(b, layout, pool({}, x)).outputs[0];
      EXPECT_TRUE(std::isnan(y.values[0])) << name_of(b) << int(layout);
      EXPECT_TRUE(std::isnan(y.values[1])) << name_of(b) << int(layout);
      EXPECT_FALSE(std::isnan(y.values[2]));
    }
}

// The expected values are worked out by hand from PyTorch's definition.
TEST(Pool, DivisorsAreThoseOfPyTorch) {
  const Tensor ones = floats({1, 1, 1, 4}, {1, 1, 1, 1});
  // With width 4, kernel 3, stride 2 and padding 1 the windows are [-1, 2) and [1, 4). ceil_mode
  // adds [3, 6), of which PyTorch counts [3, 5).
  PoolProblem problem{
      .kind = PoolKind::average, .kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .ceil_mode = true};
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    problem.count_include_pad = true;
    const std::vector<double> counted = run(b, Layout::row_major, pool(problem, ones)).outputs[0].values;
    ASSERT_EQ(counted.size(), 3u);
    EXPECT_FLOAT_EQ(counted[0], 2.0f / 3);
    EXPECT_FLOAT_EQ(counted[1], 1);
    EXPECT_FLOAT_EQ(counted[2], 1.0f / 2);
    problem.count_include_pad = false;
    const std::vector<double> clipped = run(b, Layout::row_major, pool(problem, ones)).outputs[0].values;
    EXPECT_EQ(clipped, (std::vector<double>{1, 1, 1}));
  }
}

TEST(Pool, OutputShapes) {
  const auto extent = [](int input, int kernel, int stride, int padding, bool ceil) {
    return pool_output_shape({.kernel = {kernel, kernel},
                              .stride = {stride, stride},
                              .padding = {padding, padding},
                              .ceil_mode = ceil},
                             {1, 1, input, input})[2];
  };
  EXPECT_EQ(extent(112, 3, 2, 1, false), 56);  // as in ResNet
  EXPECT_EQ(extent(112, 3, 2, 0, true), 56);   // as in GoogLeNet
  EXPECT_EQ(extent(55, 3, 2, 0, false), 27);   // as in AlexNet
  EXPECT_EQ(extent(4, 2, 3, 1, true), 2);      // a third window would begin outside the image
  EXPECT_THROW(extent(2, 3, 1, 0, false), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
