// Tests ReLU, add, dropout and reorder.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/add/add.h"
#include "kernels/dropout/dropout.h"
#include "kernels/relu/relu.h"
#include "kernels/reorder/reorder.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

const std::vector<Shape> kShapes = {{2, 3, 5, 7}, {1, 16, 4, 4}, {3, 33, 1, 1}, {5, 37}, {1, 20, 40, 33}};

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
  for (const Shape& shape : kShapes) {
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

TEST(Add, MatchesTheReference) {
  Random random(4);
  for (const Shape& shape : kShapes)
    for (int count = 2; count <= 5; ++count) {
      std::vector<Tensor> inputs;
      for (int i = 0; i < count; ++i) inputs.push_back(random.uniform(shape));
      expect_matches_reference(
          {.name = "add_forward " + shape.to_string(),
           .maker = [](Backend backend, KernelRequest& request) { return add_forward(backend, {}, request); },
           .inputs = inputs,
           .outputs = {f32(shape)},
           .tolerance = 2e-7});
    }
}

// The sums for a batch norm must be those of y as it is stored (rounded), without the padding
// samples at the end of the batch. y itself must have all samples.
TEST(Add, StatisticsAreThoseOfWhatWasWritten) {
  Random random(6);
  for (const Shape& shape : {Shape{3, 64, 14, 14}, Shape{20, 160, 9, 7}, Shape{5, 21, 3, 3}, Shape{300, 40}})
    for (const int count : {2, 3, 9})
      for (const std::int64_t valid : {shape[0], shape[0] - 2}) {
        Case test{.name = "add_forward " + shape.to_string() + " with statistics",
                  .maker =
                      [](Backend backend, KernelRequest& request) {
                        return add_forward(backend, {.statistics = true}, request);
                      },
                  .outputs = {f32(shape), f64({2, shape[1]})},
                  .control = all_valid(valid)};
        for (int i = 0; i < count; ++i) test.inputs.push_back(random.uniform(shape));
        Case plain = test;
        plain.maker = [](Backend backend, KernelRequest& request) {
          return add_forward(backend, {}, request);
        };
        plain.outputs.pop_back();
        const auto expect_sums = [&](Backend backend, Layout layout, bool half) {
          const Case sum = half ? in_bf16(plain) : plain, both = half ? in_bf16(test) : test;
          const std::string what = test.name + " on " + name_of(backend);
          const Result result = run(backend, layout, both);
          EXPECT_EQ(result.outputs[0].values, run(backend, layout, sum).outputs[0].values) << what;
          expect_close(result.outputs[1], batch_norm_sums(result.outputs[0], valid), 2e-6, what);
          expect_in_place_equals(backend, layout, both, result);
        };
        expect_sums(Backend::reference, Layout::row_major, false);
        if (!gpu_present()) continue;
        expect_sums(Backend::cuda, Layout::channels_last, false);
        expect_sums(Backend::cuda, Layout::channels_last, true);
      }
}

TEST(Add, StatisticsKeepTheVarianceFarFromZero) {
  Random random(7);
  const Shape shape{20, 24, 28, 28};
  for (const double ratio : kRatios) {
    Case test{
        .name = "add_forward with statistics, ratio " + std::to_string(ratio),
        .maker = [](Backend backend,
                    KernelRequest& request) { return add_forward(backend, {.statistics = true}, request); },
        .inputs = {random.uniform(shape, ratio - 1, ratio + 1), random.uniform(shape)},
        .outputs = {f32(shape), f64({2, shape[1]})},
        .control = all_valid(shape[0] - 1)};
    const auto check = [&](Backend backend, Layout layout, DType type) {
      const Result result = run(backend, layout, type == DType::bf16 ? in_bf16(test) : test);
      expect_variance(result.outputs[1], result.outputs[0], shape[0] - 1, type, test.name);
    };
    check(Backend::reference, Layout::row_major, DType::f32);
    if (!gpu_present()) continue;
    check(Backend::cuda, Layout::channels_last, DType::f32);
    if (ratio < 1000) check(Backend::cuda, Layout::channels_last, DType::bf16);
  }
}

TEST(Add, IsTheSum) {
  const Case test{
      .maker = [](Backend backend, KernelRequest& request) { return add_forward(backend, {}, request); },
      .inputs = {floats({3}, {1, 2, 3}), floats({3}, {10, 20, 30}), floats({3}, {100, 200, 300})},
      .outputs = {f32({3})}};
  EXPECT_EQ(run_reference(test).outputs[0].values, (std::vector<double>{111, 222, 333}));
}

TEST(Add, RefusesOperandsOfDifferentLayouts) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    KernelRequest request;
    request.inputs = {f32({1, 16, 2, 2}), f32({1, 16, 2, 2})};
    request.inputs[0].layout = Layout::row_major;
    request.inputs[1].layout = Layout::blocked16;
    request.outputs = {f32({1, 16, 2, 2})};
    EXPECT_THROW(add_forward(backend, {}, request), std::invalid_argument) << name_of(backend);
  }
}

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
  for (const Shape& shape : kShapes)
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

TEST(Reorder, MovesEveryElement) {
  Random random(9);
  const std::vector<Layout> layouts = {Layout::row_major, Layout::channels_last, Layout::blocked16,
                                       Layout::blocked8};
  for (const Shape& shape : kShapes) {
    if (shape.rank() != 4) continue;
    for (const Layout from : layouts)
      for (const Layout to : layouts) {
        Tensor x = random.uniform(shape);
        x.desc.layout = from;
        TensorDesc y = f32(shape);
        y.layout = to;
        const Case test{
            .name = "reorder_forward " + shape.to_string(),
            .maker = [](Backend b, KernelRequest& request) { return reorder_forward(b, {}, request); },
            .inputs = {x},
            .outputs = {y},
            .onednn = true};
        EXPECT_EQ(run(Backend::cpu, Layout::row_major, test).outputs[0].values, x.values)
            << shape.to_string() << " from " << int(from) << " to " << int(to);
      }
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
