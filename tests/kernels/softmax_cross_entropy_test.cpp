// Softmax cross-entropy: loss, hits and gradient.
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

StepControl control_of(const Tensor& label) {
  StepControl control;
  for (const double value : label.values) control.valid += value >= 0;
  control.global_valid = control.valid + 5;
  return control;
}

Case loss(float smoothing, Tensor logits, Tensor label) {
  const Shape shape = logits.desc.shape;
  const StepControl control = control_of(label);
  return {
      .name = "softmax_cross_entropy_forward " + shape.to_string(),
      .maker = [=](Backend b, KernelRequest& r) { return softmax_cross_entropy_forward(b, {smoothing}, r); },
      .inputs = {std::move(logits), std::move(label)},
      .outputs = {f32(shape), f64({kLossMetrics})},
      .control = control};
}

Case gradient(float smoothing, Tensor probabilities, Tensor label) {
  const Shape shape = probabilities.desc.shape;
  const StepControl control = control_of(label);
  return {
      .name = "softmax_cross_entropy_backward " + shape.to_string(),
      .maker = [=](Backend b, KernelRequest& r) { return softmax_cross_entropy_backward(b, {smoothing}, r); },
      .inputs = {std::move(probabilities), std::move(label)},
      .outputs = {f32(shape)},
      .control = control};
}

Tensor random_labels(Random& random, std::int64_t samples, std::int64_t classes, int missing) {
  std::vector<int> values;
  for (std::int64_t n = 0; n < samples; ++n) values.push_back(random.pick(0, static_cast<int>(classes) - 1));
  for (int i = 0; i < missing; ++i) values[values.size() - 1 - i] = -1;
  return labels(values);
}

TEST(SoftmaxCrossEntropy, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : {Shape{6, 10}, Shape{3, 1}, Shape{9, 3}, Shape{5, 1000}})
    for (const float smoothing : {0.f, 0.1f})
      for (const int missing : {0, 2}) {
        const Tensor label = random_labels(random, shape[0], shape[1], missing);
        const Case forward = loss(smoothing, random.uniform(shape, -8, 8), label);
        expect_matches_reference(forward);
        const Tensor probabilities{f32(shape), run_reference(forward).outputs[0].values, {}};
        expect_matches_reference(gradient(smoothing, probabilities, label));
      }
}

TEST(SoftmaxCrossEntropy, BackwardIsTheDerivative) {
  Random random(2);
  for (const float smoothing : {0.f, 0.1f}) {
    const Tensor label = random_labels(random, 4, 6, 1);
    const Case forward = loss(smoothing, random.uniform({4, 6}, -2, 2), label);
    const Tensor probabilities{f32({4, 6}), run_reference(forward).outputs[0].values, {}};
    const Result dlogits = run_reference(gradient(smoothing, probabilities, label));
    // The loss over the samples of all ranks.
    const double share = 1.0 / forward.control.global_valid;
    expect_gradient(dlogits.outputs[0].values, central_differences(forward, 0, {{}, {share, 0, 0, 0}}),
                    "loss");
  }
}

// torch.nn.functional.cross_entropy(..., reduction="sum"), PyTorch 1.13.
TEST(SoftmaxCrossEntropy, AgreesWithPyTorch) {
  const Tensor logits = floats({2, 3}, {1, 2, -1, 0.5, 0, 3});
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const auto sum = [&](float smoothing) {
      return run(b, Layout::row_major, loss(smoothing, logits, labels({1, 0}))).outputs[1].values[0];
    };
    EXPECT_NEAR(sum(0), 2.9728851, 1e-6);
    EXPECT_NEAR(sum(0.1f), 3.0395517, 1e-6);
  }
}

TEST(SoftmaxCrossEntropy, CountsHits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Rows: the label is first; sixth; second; equal to all and class 0; equal to all and class 5; not there;
  // a NaN; beside a NaN.
  const Tensor logits = floats({8, 6}, {9,   1,   2, 3, 4, 5,  //
                                        0,   1,   2, 3, 4, 5,  //
                                        0,   9,   8, 0, 0, 0,  //
                                        1,   1,   1, 1, 1, 1,  //
                                        1,   1,   1, 1, 1, 1,  //
                                        9,   0,   0, 0, 0, 0,  //
                                        nan, 0,   0, 0, 0, 0,  //
                                        9,   nan, 0, 0, 0, 0});
  const Tensor label = labels({0, 0, 2, 0, 5, -1, 0, 0});
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const std::vector<double> metrics = run(b, Layout::row_major, loss(0, logits, label)).outputs[1].values;
    EXPECT_TRUE(std::isnan(metrics[0])) << "a NaN has to reach the loss";
    EXPECT_EQ(metrics[1], 2) << "top-1: rows 0 and 3";
    EXPECT_EQ(metrics[2], 4) << "top-5: rows 0, 2, 3 and 7";
    EXPECT_EQ(metrics[3], 7);
  }
}

// Logits of an untrained deep network can be huge: nothing may overflow.
TEST(SoftmaxCrossEntropy, LargeLogitsStayFinite) {
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const Result result =
        run(b, Layout::row_major, loss(0.1f, floats({1, 3}, {1e4, -1e4, 3e4}), labels({0})));
    EXPECT_EQ(result.outputs[0].values, (std::vector<double>{0, 0, 1}));
    EXPECT_NEAR(result.outputs[1].values[0], 2e4 * 0.9 + 0.1 / 3 * 6e4, 1e-2);
  }
}

TEST(SoftmaxCrossEntropy, RowsWithoutLabelGetNoGradient) {
  Random random(3);
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    Tensor probabilities = random.uniform({2, 3}, 0, 1);
    probabilities.values[4] = std::numeric_limits<double>::quiet_NaN();
    const Result result = run(b, Layout::row_major, gradient(0.1f, probabilities, labels({1, -1})));
    for (int j = 3; j < 6; ++j) EXPECT_EQ(result.outputs[0].values[j], 0);
    EXPECT_NE(result.outputs[0].values[0], 0);
  }
}

TEST(SoftmaxCrossEntropy, RefusesWhatIsNotRowsAndTheirLabels) {
  const auto make = [](Backend backend, auto change) {
    KernelRequest request;
    request.inputs = {f32({4, 3}), labels({0, 1, 2, 0}).desc};
    request.outputs = {f32({4, 3}), f64({kLossMetrics})};
    change(request);
    return softmax_cross_entropy_forward(backend, {}, request);
  };
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    const auto expect_refusal = [&](auto change) {
      EXPECT_THROW(make(backend, change), std::invalid_argument) << name_of(backend);
    };
    EXPECT_NO_THROW(make(backend, [](KernelRequest&) {}));
    expect_refusal([](KernelRequest& r) { r.inputs[0] = r.outputs[0] = f32({4, 3, 2, 2}); });
    expect_refusal([](KernelRequest& r) { r.inputs[0] = r.outputs[0] = f32({4}); });
    expect_refusal([](KernelRequest& r) { r.inputs[1] = labels({0, 1, 2}).desc; });
    expect_refusal([](KernelRequest& r) { r.inputs[1] = f32({4}); });
    expect_refusal([](KernelRequest& r) { r.outputs[0] = f32({4, 2}); });
    expect_refusal([](KernelRequest& r) { r.outputs[1] = f32({kLossMetrics}); });
    expect_refusal([](KernelRequest& r) { r.outputs.pop_back(); });
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
