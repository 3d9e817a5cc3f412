// Tests linear layers and convolutions: forward, and the gradients of data, weights and bias.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "kernels/conv2d/conv2d.h"
#include "kernels/linear/linear.h"
#include "tests/brief.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

// The three operations of one layer. The inputs of forward are x, the weights and, if the layer has
// one, the bias.
struct Layer {
  Case forward, backward_data, backward_weights;
};

// Forward chooses the layout of the weights, which backward must accept.
void expect_matches(const Layer& layer, const std::vector<Backend>& under_test) {
  SCOPED_TRACE(layer.forward.name);
  const Result y = run_reference(layer.forward), dx = run_reference(layer.backward_data),
               dw = run_reference(layer.backward_weights);
  for (const Backend backend : under_test)
    for (const Layout layout : layouts_of(backend)) {
      const std::string what = std::string(name_of(backend)) + ", layout " + std::to_string(int(layout));
      const Result forward = run(backend, layout, layer.forward);
      expect_same(layer.forward, forward, y, "forward on " + what);
      Case data = layer.backward_data, weights = layer.backward_weights;
      data.inputs[1].desc = forward.inputs[1].desc;
      expect_same(data, run(backend, layout, data), dx, "backward_data on " + what);
      if (data.outputs[0].shape.rank() == 4) {
        data.outputs[0].layout = layout;
        expect_same(data, run(backend, layout, data), dx, "backward_data in x's layout on " + what);
      }
      weights.outputs[0] = forward.inputs[1].desc;
      weights.outputs[0].dtype = DType::f32;
      const Result gradients = run(backend, layout, weights);
      expect_same(weights, gradients, dw, "backward_weights on " + what);
      EXPECT_EQ(gradients.outputs[0].desc.bytes() / bytes_of(DType::f32),
                forward.inputs[1].desc.bytes() / bytes_of(forward.inputs[1].desc.dtype));
    }
  const bool single = layer.forward.activations == DType::f32;
  if (single && std::find(under_test.begin(), under_test.end(), Backend::cuda) != under_test.end())
    expect_matches({in_bf16(layer.forward), in_bf16(layer.backward_data), in_bf16(layer.backward_weights)},
                   {Backend::cuda});
}

// Compares the gradients with central differences. The layer must have no fused ReLU, because
// backward leaves the derivative of a fused ReLU to its caller.
void expect_gradients(const Layer& layer) {
  const std::vector<double>& dy = layer.backward_data.inputs[0].values;
  const Result dx = run_reference(layer.backward_data), dw = run_reference(layer.backward_weights);
  const std::string& name = layer.forward.name;
  expect_gradient(dx.outputs[0].values, central_differences(layer.forward, 0, {dy}), name + " dx");
  expect_gradient(dw.outputs[0].values, central_differences(layer.forward, 1, {dy}), name + " dweights");
  if (layer.forward.inputs.size() > 2)
    expect_gradient(dw.outputs[1].values, central_differences(layer.forward, 2, {dy}), name + " dbias");
}

template <typename Problem>
using Operation = Kernel (*)(Backend, const Problem&, KernelRequest&);

template <typename Problem>
Layer layer_of(const std::string& name, const Problem& problem, Operation<Problem> forward,
               Operation<Problem> data, Operation<Problem> weights, const std::vector<Tensor>& inputs,
               const Tensor& dy) {
  const auto maker = [problem](Operation<Problem> operation) {
    return [=](Backend backend, KernelRequest& request) { return operation(backend, problem, request); };
  };
  Layer layer;
  layer.forward = {.name = name,
                   .maker = maker(forward),
                   .inputs = inputs,
                   .outputs = {dy.desc},
                   .free_layout = {1},
                   .onednn = true};
  layer.backward_data = {.name = name + " backward_data",
                         .maker = maker(data),
                         .inputs = {dy, inputs[1]},
                         .outputs = {inputs[0].desc},
                         .onednn = true};
  layer.backward_weights = {.name = name + " backward_weights",
                            .maker = maker(weights),
                            .inputs = {inputs[0], dy},
                            .outputs = {inputs[1].desc},
                            .single = {0},
                            .onednn = true};
  if (inputs.size() > 2) layer.backward_weights.outputs.push_back(inputs[2].desc);
  return layer;
}

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

// tf32 drops 13 bits of each operand. That changes a sum of many products by 8e-4 of its value, and
// a sum of few products by more.
void expect_matches_in_tf32(Layer layer) {
  for (Case* test : {&layer.forward, &layer.backward_data, &layer.backward_weights}) {
    test->tolerance = 2e-3;
    const Result expected = run_reference(*test);
    expect_same(*test, run(Backend::cuda, Layout::channels_last, *test), expected, test->name + " in tf32");
  }
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
