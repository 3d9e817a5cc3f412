#include "kernels/conv2d/conv2d.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/brief.h"
#include "tests/kernels/weighted_layer.h"

namespace convoy::kernels::testing {
namespace {

Layer conv2d(Random& random, const Conv2dProblem& problem, const Shape& x, const Shape& weights) {
  std::vector<Tensor> inputs = {random.uniform(x), random.uniform(weights)};
  if (problem.bias) inputs.push_back(random.uniform({weights[0]}));
  const std::string name = "conv2d " + x.to_string() + " by " + weights.to_string() + " stride " +
                           std::to_string(problem.stride[0]) + "," + std::to_string(problem.stride[1]) +
                           " padding " + std::to_string(problem.padding[0]) + "," +
                           std::to_string(problem.padding[1]) + " dilation " +
                           std::to_string(problem.dilation[0]) + "," + std::to_string(problem.dilation[1]) +
                           " groups " + std::to_string(problem.groups);
  return layer_of<Conv2dProblem>(name, problem, conv2d_forward, conv2d_backward_data, conv2d_backward_weights,
                                 inputs, random.uniform(conv2d_output_shape(problem, x, weights)));
}

Layer random_conv2d(Random& random, std::int64_t largest_group, bool tf32 = false) {
  Conv2dProblem problem;
  problem.tf32 = tf32;
  const auto kernel = [&] { return random.pick(1, 4); };
  Shape weights{0, random.pick(1, int(largest_group)), kernel(), kernel()};
  problem.groups = random.coin() ? 1 : random.pick(2, 4);
  weights[0] = problem.groups * random.pick(1, int(largest_group));
  Shape x{random.pick(1, 3), weights[1] * problem.groups, 0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    problem.stride[axis] = random.pick(1, 3);
    problem.dilation[axis] = random.pick(1, 2);
    problem.padding[axis] = random.pick(0, int(weights[axis + 2]) / 2);
    x[axis + 2] = problem.dilation[axis] * (weights[axis + 2] - 1) + random.pick(1, 5);
  }
  problem.bias = random.coin();
  return conv2d(random, problem, x, weights);
}

TEST(Conv2d, MatchesTheReference) {
  Random random(4);
  for (int i = 0; i < (test::brief() ? 10 : 40); ++i) expect_matches(random_conv2d(random, 20), backends());
  // These shapes are those of networks: a first layer, whole blocks of channels, 1x1 filters with a
  // stride, and depthwise filters.
  const Conv2dProblem same{.padding = {1, 1}}, strided{.stride = {2, 2}, .bias = true};
  expect_matches(conv2d(random, {.stride = {2, 2}, .padding = {3, 3}}, {2, 3, 17, 17}, {16, 3, 7, 7}),
                 backends());
  expect_matches(conv2d(random, same, {2, 32, 8, 8}, {32, 32, 3, 3}), backends());
  expect_matches(conv2d(random, strided, {2, 32, 9, 9}, {48, 32, 1, 1}), backends());
  expect_matches(conv2d(random, {.padding = {1, 1}, .groups = 32}, {2, 32, 7, 7}, {32, 1, 3, 3}), backends());
  expect_matches(
      conv2d(random, {.padding = {1, 1}, .groups = 2, .bias = true}, {1, 32, 7, 7}, {64, 16, 3, 3}),
      backends());
}

TEST(Conv2d, TakesTf32) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU";
  Random random(8);
  for (int i = 0; i < 20; ++i) expect_matches_in_tf32(random_conv2d(random, 20, true));
  expect_matches_in_tf32(conv2d(random, {.padding = {1, 1}, .tf32 = true}, {2, 32, 8, 8}, {32, 32, 3, 3}));
  expect_matches_in_tf32(
      conv2d(random, {.stride = {2, 2}, .padding = {1, 1}, .tf32 = true}, {2, 64, 9, 9}, {40, 64, 3, 3}));
}

TEST(Conv2d, BackwardIsTheDerivative) {
  Random random(5);
  for (int i = 0; i < 6; ++i) expect_gradients(random_conv2d(random, 3));
}

TEST(Conv2d, FusedReluIsThatOfTheSum) {
  Random random(6);
  Conv2dProblem problem{.padding = {1, 1}, .bias = true};
  const Layer plain = conv2d(random, problem, {2, 20, 6, 5}, {24, 20, 3, 3});
  problem.relu = true;
  Case fused = plain.forward;
  fused.maker = [=](Backend backend, KernelRequest& request) {
    return conv2d_forward(backend, problem, request);
  };
  Result expected = run_reference(plain.forward);
  for (double& value : expected.outputs[0].values) value = std::max(value, 0.0);
  expect_same(fused, run_reference(fused), expected, "reference");
  for (const Backend backend : backends())
    for (const Layout layout : layouts_of(backend))
      expect_same(fused, run(backend, layout, fused), expected, name_of(backend));
}

// A NaN must stay a NaN, so that a run that diverges shows it. A careless max(NaN, 0) would give 0.
TEST(Conv2d, FusedReluKeepsNaN) {
  Random random(7);
  Case fused =
      conv2d(random, {.padding = {1, 1}, .bias = true, .relu = true}, {2, 20, 6, 5}, {24, 20, 3, 3}).forward;
  std::fill_n(fused.inputs[1].values.begin(), 20 * 9, std::numeric_limits<double>::quiet_NaN());
  const auto expect_kept = [](const Result& result, const std::string& name) {
    const auto& y = result.outputs[0].values;
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(std::isnan(y[i]), i / 30 % 24 == 0) << name << ", element " << i;
  };
  expect_kept(run_reference(fused), "reference");
  for (const Backend backend : backends())
    for (const Layout layout : layouts_of(backend))
      expect_kept(run(backend, layout, fused), name_of(backend));
}

// With input_relu, x is the result of a ReLU. backward_data must give the gradient before that
// ReLU: dx, but 0 if x is not above 0.
TEST(Conv2d, GivesTheGradientBeforeItsInputsRelu) {
  struct Shapes {
    Conv2dProblem problem;
    Shape x, weights;
  };
  const std::vector<Shapes> all = {{{.padding = {1, 1}}, {3, 64, 14, 14}, {128, 64, 3, 3}},
                                   {{.padding = {1, 1}}, {2, 160, 7, 7}, {64, 160, 3, 3}},
                                   {{.stride = {2, 2}, .padding = {1, 1}}, {2, 64, 9, 9}, {40, 64, 3, 3}},
                                   {{}, {2, 72, 9, 7}, {40, 72, 1, 1}},
                                   {{.padding = {1, 1}, .groups = 2}, {2, 32, 7, 7}, {64, 16, 3, 3}},
                                   {{.padding = {1, 1}}, {2, 20, 5, 5}, {12, 20, 3, 3}}};
  Random random(10);
  for (const Shapes& shapes : all)
    for (const bool tf32 : {false, true}) {
      Conv2dProblem problem = shapes.problem;
      problem.tf32 = tf32;
      Case test = conv2d(random, problem, shapes.x, shapes.weights).backward_data;
      const Result behind = run_reference(test);
      problem.input_relu = true;
      test.maker = [=](Backend backend, KernelRequest& request) {
        return conv2d_backward_data(backend, problem, request);
      };
      Tensor x = random.uniform(shapes.x);
      for (std::size_t i = 0; i < x.values.size(); i += 3) x.values[i] = 0;
      x.values[1] = std::numeric_limits<double>::quiet_NaN();
      test.inputs.push_back(x);
      const Result before = run_reference(test);
      for (std::size_t i = 0; i < x.values.size(); ++i)
        EXPECT_EQ(before.outputs[0].values[i], x.values[i] > 0 ? behind.outputs[0].values[i] : 0);
      if (!gpu_present()) continue;
      if (tf32) test.tolerance = 1e-3;
      expect_same(test, run(Backend::cuda, Layout::channels_last, test), before, test.name);
      if (tf32) continue;
      const Case rounded = in_bf16(test);
      expect_same(rounded, run(Backend::cuda, Layout::channels_last, rounded), run_reference(rounded),
                  rounded.name);
    }
}

// The sums for a batch norm must be those of y as it is stored (rounded), without the padding
// samples at the end of the batch.
TEST(Conv2d, StatisticsAreThoseOfWhatWasWritten) {
  Random random(9);
  struct Shapes {
    Conv2dProblem problem;
    Shape x, weights;
  };
  const std::vector<Shapes> all = {{{.padding = {1, 1}}, {3, 64, 14, 14}, {128, 64, 3, 3}},
                                   {{.stride = {2, 2}, .padding = {3, 3}}, {2, 3, 20, 20}, {64, 3, 7, 7}},
                                   {{.bias = true}, {4, 72, 9, 7}, {40, 72, 1, 1}},
                                   {{.padding = {1, 1}}, {70, 64, 4, 4}, {64, 64, 3, 3}},
                                   {{.padding = {1, 1}}, {9, 32, 12, 12}, {160, 32, 3, 3}},
                                   {{.padding = {1, 1}}, {9, 32, 12, 12}, {320, 32, 3, 3}},
                                   {{.padding = {1, 1}}, {2, 20, 5, 5}, {12, 20, 3, 3}}};
  for (Shapes shapes : all)
    for (const bool all_are_valid : {true, false}) {
      shapes.problem.statistics = true;
      Case test = conv2d(random, shapes.problem, shapes.x, shapes.weights).forward;
      test.maker = [problem = shapes.problem](Backend backend, KernelRequest& request) {
        return conv2d_forward(backend, problem, request);
      };
      const std::int64_t channels = shapes.weights[0], valid = shapes.x[0] - (all_are_valid ? 0 : 1);
      test.outputs.push_back(f64({2, channels}));
      test.control = all_valid(valid);
      const auto expect_sums = [&](const Result& result, const std::string& what) {
        expect_close(result.outputs[1], batch_norm_sums(result.outputs[0], valid), 2e-6,
                     test.name + " on " + what);
      };
      expect_sums(run_reference(test), "reference");
      if (!gpu_present()) continue;
      expect_sums(run(Backend::cuda, Layout::channels_last, test), "cuda");
      expect_sums(run(Backend::cuda, Layout::channels_last, in_bf16(test)), "cuda in bf16");
      Conv2dProblem tf32 = shapes.problem;
      tf32.tf32 = true;
      test.maker = [tf32](Backend backend, KernelRequest& request) {
        return conv2d_forward(backend, tf32, request);
      };
      expect_sums(run(Backend::cuda, Layout::channels_last, test), "cuda in tf32");
    }
}

// The expected values are worked out by hand. They show that the filter is not flipped and that
// each input meets the right weight.
TEST(Conv2d, KnownAnswers) {
  const auto y_of = [](const Conv2dProblem& problem, Tensor x, Tensor weights) {
    const Case test{
        .maker = [=](Backend b, KernelRequest& request) { return conv2d_forward(b, problem, request); },
        .inputs = {x, weights},
        .outputs = {f32(conv2d_output_shape(problem, x.desc.shape, weights.desc.shape))},
        .free_layout = {1},
        .onednn = true};
    std::vector<double> values = run_reference(test).outputs[0].values;
    for (const Backend b : backends())
      EXPECT_EQ(run(b, layouts_of(b).front(), test).outputs[0].values, values) << name_of(b);
    return values;
  };
  EXPECT_EQ(y_of({}, floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1, 2}, {10, 1})),
            (std::vector<double>{12, 23, 34}));
  EXPECT_EQ(y_of({.dilation = {1, 2}}, floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1, 2}, {10, 1})),
            (std::vector<double>{13, 24}));
  EXPECT_EQ(y_of({.stride = {1, 2}, .padding = {0, 1}}, floats({1, 1, 1, 4}, {1, 2, 3, 4}),
                 floats({1, 1, 1, 3}, {100, 10, 1})),
            (std::vector<double>{12, 234}));
  EXPECT_EQ(y_of({.groups = 2}, floats({1, 4, 1, 1}, {1, 2, 3, 4}), floats({2, 2, 1, 1}, {10, 1, 10, 1})),
            (std::vector<double>{12, 34}));
}

TEST(Conv2d, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(conv2d_output_shape({}, {1, 3, 4, 4}, {8, 4, 1, 1}), std::invalid_argument);
  EXPECT_THROW(conv2d_output_shape({.groups = 3}, {1, 6, 4, 4}, {8, 2, 1, 1}), std::invalid_argument);
  EXPECT_THROW(conv2d_output_shape({}, {1, 3, 4, 4}, {8, 3, 5, 1}), std::invalid_argument);
  EXPECT_EQ(conv2d_output_shape({.stride = {2, 2}, .padding = {3, 3}}, {1, 3, 224, 224}, {64, 3, 7, 7}),
            (Shape{1, 64, 112, 112}));
}

}  // namespace
}  // namespace convoy::kernels::testing
