// Tests softmax cross-entropy: loss, hits and gradient.
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/kernels/harness.h"
#include "tests/kernels/mix_support.h"

namespace convoy::kernels::testing {
namespace {

struct Loss {
  float smoothing = 0, weight = 1;
  bool auxiliary = false, plain = false;
  LossProblem problem() const { return {weight, auxiliary, plain}; }
};

StepControl control_of(const Loss& loss, const Tensor& label) {
  StepControl control;
  control.hyperparameters.label_smoothing = loss.smoothing;
  for (const double value : label.values) control.valid += value >= 0;
  control.global_valid = control.valid + 5;
  return control;
}

Case loss(const Loss& of, Tensor logits, Tensor label) {
  const Shape shape = logits.desc.shape;
  const StepControl control = control_of(of, label);
  return {
      .name = "softmax_cross_entropy_forward " + shape.to_string(),
      .maker = [=](Backend b, KernelRequest& r) { return softmax_cross_entropy_forward(b, of.problem(), r); },
      .inputs = {std::move(logits), std::move(label)},
      .outputs = {f32(shape), f64({kLossMetrics})},
      .control = control};
}

Case gradient(const Loss& of, Tensor probabilities, Tensor label) {
  const Shape shape = probabilities.desc.shape;
  const StepControl control = control_of(of, label);
  return {.name = "softmax_cross_entropy_backward " + shape.to_string(),
          .maker = [=](Backend b,
                       KernelRequest& r) { return softmax_cross_entropy_backward(b, of.problem(), r); },
          .inputs = {std::move(probabilities), std::move(label)},
          .outputs = {f32(shape)},
          .control = control};
}

// Returns the case with mixed samples.
Case with_mix(Case test, const MixParameters& mix) {
  test.name += " of mixed samples";
  test.inputs.push_back(mix_operand(mix));
  return test;
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
        const Case forward = loss({smoothing}, random.uniform(shape, -8, 8), label);
        expect_matches_reference(forward);
        const Tensor probabilities{f32(shape), run_reference(forward).outputs[0].values, {}};
        expect_matches_reference(gradient({smoothing}, probabilities, label));
        const MixParameters mix{1, 0.7f};
        expect_matches_reference(with_mix(forward, mix));
        expect_matches_reference(with_mix(gradient({smoothing}, probabilities, label), mix));
      }
}

// The loss of an auxiliary output (a second classifier), times its weight, must be added to the
// loss of the main output. The main output's hits and samples must not change.
TEST(SoftmaxCrossEntropy, OfAnAuxiliaryOutputAddsToTheMetrics) {
  Random random(3);
  const Tensor label = random_labels(random, 6, 4, 1), logits = random.uniform({6, 4}, -2, 2);
  for (const bool mixed : {false, true}) {
    const auto with = [&](const Loss& problem) {
      Case forward = loss(problem, logits, label);
      return mixed ? with_mix(std::move(forward), {1, 0.7f}) : forward;
    };
    Case forward = with({0.1f, 0.25f, true});
    forward.inputs.push_back({{DType::f64, {kLossMetrics}, Layout::row_major, nullptr}, {10, 3, 5, 7}, {}});
    expect_matches_reference(forward);
    const auto metrics = run_reference(forward).outputs[1].values;
    EXPECT_NEAR(metrics[0], 10 + 0.25 * run_reference(with({0.1f})).outputs[1].values[0], 1e-12);
    EXPECT_EQ(std::vector(metrics.begin() + 1, metrics.end()), (std::vector<double>{3, 5, 7}));
  }
}

TEST(SoftmaxCrossEntropy, OfAnEvaluationIgnoresLabelSmoothing) {
  Random random(6);
  const Tensor label = random_labels(random, 6, 10, 1), logits = random.uniform({6, 10}, -4, 4);
  const Case evaluated = loss({.smoothing = 0.1f, .plain = true}, logits, label);
  expect_matches_reference(evaluated);
  for (const Backend b : {Backend::reference, Backend::cpu})
    EXPECT_EQ(run(b, Layout::row_major, evaluated).outputs[1].values,
              run(b, Layout::row_major, loss({0}, logits, label)).outputs[1].values);
}

TEST(SoftmaxCrossEntropy, BackwardIsTheDerivative) {
  Random random(2);
  for (const Loss& problem : {Loss{0}, Loss{0.1f}, Loss{0.1f, 0.3f}}) {
    const Tensor label = random_labels(random, 4, 6, 1);
    const Case forward = loss(problem, random.uniform({4, 6}, -2, 2), label);
    const Tensor probabilities{f32({4, 6}), run_reference(forward).outputs[0].values, {}};
    const Result dlogits = run_reference(gradient(problem, probabilities, label));
    expect_matches_reference(gradient(problem, probabilities, label));
    // The loss is a mean over the samples of all ranks, so its gradient is divided by their number.
    const double share = 1.0 / forward.control.global_valid;
    expect_gradient(dlogits.outputs[0].values, central_differences(forward, 0, {{}, {share, 0, 0, 0}}),
                    "loss");
  }
}

TEST(SoftmaxCrossEntropy, BackwardOfMixedSamplesIsTheDerivative) {
  Random random(4);
  const MixParameters mix{1, 0.3f};
  const Tensor label = random_labels(random, 5, 6, 2);
  const Case forward = with_mix(loss({0.1f}, random.uniform({5, 6}, -2, 2), label), mix);
  const Tensor probabilities{f32({5, 6}), run_reference(forward).outputs[0].values, {}};
  const double share = 1.0 / forward.control.global_valid;
  expect_gradient(run_reference(with_mix(gradient({0.1f}, probabilities, label), mix)).outputs[0].values,
                  central_differences(forward, 0, {{}, {share, 0, 0, 0}}), "loss");
}

// The expected values come from PyTorch 1.13: cross_entropy(..., reduction="sum") with targets 0.7
// one_hot(y) + 0.3 one_hot(y[[1, 0, 2]]), and autograd's gradient of its mean.
TEST(SoftmaxCrossEntropy, OfMixedSamplesAgreesWithPyTorch) {
  const Tensor logits = floats({3, 4}, {1, 2, -1, 0.5, 0.5, 0, 3, -2, -1, 0.25, 0, 4});
  const Tensor label = labels({1, 0, 3});
  const MixParameters mix{1, 0.7f};
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const auto forward = [&](float smoothing) {
      return run(b, Layout::row_major, with_mix(loss({smoothing}, logits, label), mix));
    };
    EXPECT_NEAR(forward(0).outputs[1].values[0], 3.6224187, 1e-6);
    const Result smoothed = forward(0.1f);
    EXPECT_NEAR(smoothed.outputs[1].values[0], 4.0461687, 1e-6);
    EXPECT_EQ(smoothed.outputs[1].values[1], 2) << "hits of the own label, rows 0 and 2";
    Case backward = gradient({0.1f}, {f32({3, 4}), smoothed.outputs[0].values, {}}, label);
    backward.control.global_valid = 3;
    const Result dlogits = run(b, Layout::row_major, with_mix(backward, mix));
    const std::vector<double> expected = {-0.023597394, -0.015179987, 0.001781076,  0.036996305,
                                          -0.194302571, -0.083757939, 0.284421279,  -0.006360768,
                                          -0.006191388, -0.00085721,  -0.002510923, 0.009559521};
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(dlogits.outputs[0].values[i], expected[i], 1e-7) << i;
  }
}

TEST(SoftmaxCrossEntropy, MixingNothingKeepsTheBits) {
  Random random(5);
  const Tensor label = random_labels(random, 6, 10, 1);
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const Case forward = loss({0.1f}, random.uniform({6, 10}, -4, 4), label);
    const Result plain = run(b, Layout::row_major, forward);
    const Result mixed = run(b, Layout::row_major, with_mix(forward, {}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(mixed.outputs[i].values, plain.outputs[i].values);
    const Case backward = gradient({0.1f}, {f32({6, 10}), plain.outputs[0].values, {}}, label);
    EXPECT_EQ(run(b, Layout::row_major, with_mix(backward, {})).outputs[0].values,
              run(b, Layout::row_major, backward).outputs[0].values);
  }
}

// The expected values are those of torch.nn.functional.cross_entropy(..., reduction="sum") in
// PyTorch 1.13.
TEST(SoftmaxCrossEntropy, AgreesWithPyTorch) {
  const Tensor logits = floats({2, 3}, {1, 2, -1, 0.5, 0, 3});
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const auto sum = [&](float smoothing) {
      return run(b, Layout::row_major, loss({smoothing}, logits, labels({1, 0}))).outputs[1].values[0];
    };
    EXPECT_NEAR(sum(0), 2.9728851, 1e-6);
    EXPECT_NEAR(sum(0.1f), 3.0395517, 1e-6);
  }
}

TEST(SoftmaxCrossEntropy, CountsHits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor logits = floats({8, 6}, {9,   1,   2, 3, 4, 5,    // the label's logit is the largest
                                        0,   1,   2, 3, 4, 5,    // it is the smallest
                                        0,   9,   8, 0, 0, 0,    // it is the second largest
                                        1,   1,   1, 1, 1, 1,    // all are equal; the label is 0
                                        1,   1,   1, 1, 1, 1,    // all are equal; the label is 5
                                        9,   0,   0, 0, 0, 0,    // there is no label
                                        nan, 0,   0, 0, 0, 0,    // the label's logit is NaN
                                        9,   nan, 0, 0, 0, 0});  // another logit is NaN
  const Tensor label = labels({0, 0, 2, 0, 5, -1, 0, 0});
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const std::vector<double> metrics = run(b, Layout::row_major, loss({0}, logits, label)).outputs[1].values;
    EXPECT_TRUE(std::isnan(metrics[0])) << "a NaN has to reach the loss";
    EXPECT_EQ(metrics[1], 2) << "top-1: rows 0 and 3";
    EXPECT_EQ(metrics[2], 4) << "top-5: rows 0, 2, 3 and 7";
    EXPECT_EQ(metrics[3], 7);
  }
}

// The logits of an untrained deep network can be huge. Nothing may overflow.
TEST(SoftmaxCrossEntropy, LargeLogitsStayFinite) {
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const Result result =
        run(b, Layout::row_major, loss({0.1f}, floats({1, 3}, {1e4, -1e4, 3e4}), labels({0})));
    EXPECT_EQ(result.outputs[0].values, (std::vector<double>{0, 0, 1}));
    EXPECT_NEAR(result.outputs[1].values[0], 2e4 * 0.9 + 0.1 / 3 * 6e4, 1e-2);
  }
}

TEST(SoftmaxCrossEntropy, RowsWithoutLabelGetNoGradient) {
  Random random(3);
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    Tensor probabilities = random.uniform({2, 3}, 0, 1);
    probabilities.values[4] = std::numeric_limits<double>::quiet_NaN();
    const Result result = run(b, Layout::row_major, gradient({0.1f}, probabilities, labels({1, -1})));
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
    const auto mix = [&](KernelRequest& r, std::int64_t words) {
      r.inputs.push_back({DType::i32, {words}, Layout::any, nullptr});
    };
    EXPECT_NO_THROW(make(backend, [&](KernelRequest& r) { mix(r, kMixWords); }));
    expect_refusal([&](KernelRequest& r) { mix(r, kMixWords - 1); });
    expect_refusal([&](KernelRequest& r) { mix(r, kMixWords), r.inputs[2].dtype = DType::f32; });
    expect_refusal([&](KernelRequest& r) { mix(r, kMixWords), mix(r, kMixWords); });
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
