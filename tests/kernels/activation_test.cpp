#include "kernels/activation/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

using K = ActivationKind;

const std::vector<ActivationProblem> kProblems = {
    {.kind = K::clip},
    {.kind = K::clip, .min = 0.5f, .max = 1.25f},
    {.kind = K::leaky_relu, .slope = 0.1f},
    {.kind = K::leaky_relu, .slope = 0},
    {.kind = K::sigmoid},
    {.kind = K::hard_sigmoid, .slope = 1.f / 6},
    {.kind = K::hard_sigmoid, .slope = 0.2f, .offset = 0.25f},
    {.kind = K::hard_swish},
    {.kind = K::silu},
    {.kind = K::gelu},
    {.kind = K::gelu_tanh},
    {.kind = K::affine, .slope = -0.75f, .offset = 0.5f},
    {.kind = K::affine, .slope = 0, .offset = 2},
};

Case activation(const ActivationProblem& problem, Tensor x) {
  const Shape shape = x.desc.shape;
  return {.name = std::string(name_of(problem.kind)) + " forward " + shape.to_string(),
          .maker = [=](Backend backend,
                       KernelRequest& request) { return activation_forward(backend, problem, request); },
          .inputs = {std::move(x)},
          .outputs = {f32(shape)},
          .tolerance = 1.5e-6};
}

Case activation_gradient(const ActivationProblem& problem, Tensor from, Tensor dy) {
  const Shape shape = from.desc.shape;
  return {.name = std::string(name_of(problem.kind)) + " backward " + shape.to_string(),
          .maker = [=](Backend backend,
                       KernelRequest& request) { return activation_backward(backend, problem, request); },
          .inputs = {std::move(from), std::move(dy)},
          .outputs = {f32(shape)},
          .tolerance = 1.5e-6};
}

// Returns random values in [-9, 9] that are not near a kink of `problem`.
Tensor away_from_kinks(Random& random, Shape shape, const ActivationProblem& problem) {
  Tensor x = random.uniform(shape, -9, 9);
  const std::vector<double> kinks = {0.0,
                                     -3.0,
                                     3.0,
                                     problem.min,
                                     problem.max,
                                     -problem.offset / problem.slope,
                                     (1 - problem.offset) / problem.slope};
  for (double& value : x.values)
    for (const double kink : kinks)
      if (std::fabs(value - kink) < 0.05) value = static_cast<float>(kink + 0.06);
  return x;
}

TEST(Activation, MatchesTheReference) {
  Random random(1);
  for (const ActivationProblem& problem : kProblems)
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 16, 4, 4}, Shape{3, 33, 1, 1}, Shape{5, 37}}) {
      expect_matches_reference(activation(problem, random.uniform(shape, -9, 9)));
      const Tensor from = away_from_kinks(random, shape, problem);
      expect_matches_reference(activation_gradient(problem, from, random.uniform(shape)));
    }
}

TEST(Activation, BackwardIsTheDerivative) {
  Random random(2);
  for (const ActivationProblem& problem : kProblems) {
    const Case forward = activation(problem, away_from_kinks(random, {2, 3, 3, 4}, problem));
    const Tensor dy = random.uniform({2, 3, 3, 4});
    Tensor from = forward.inputs[0];
    if (activation_backward_reads_y(problem.kind))
      from = floats(from.desc.shape, run_reference(forward).outputs[0].values);
    const Tensor dx = run_reference(activation_gradient(problem, from, dy)).outputs[0];
    expect_gradient(dx.values, central_differences(forward, 0, {dy.values}), forward.name);
  }
}

// The expected values are those that PyTorch 2 prints for x = -3.5, -1, 0, 0.5, 2, 6.5.
TEST(Activation, HasTheFieldsValues) {
  const Tensor x = floats({6}, {-3.5, -1, 0, 0.5, 2, 6.5});
  const std::vector<std::pair<ActivationProblem, std::vector<double>>> expected = {
      {{.kind = K::clip}, {0, 0, 0, 0.5, 2, 6}},
      {{.kind = K::leaky_relu}, {-0.035, -0.01, 0, 0.5, 2, 6.5}},
      {{.kind = K::sigmoid}, {0.0293122, 0.2689414, 0.5, 0.6224593, 0.8807971, 0.9984988}},
      {{.kind = K::hard_sigmoid, .slope = 1.f / 6}, {0, 1.0 / 3, 0.5, 7.0 / 12, 5.0 / 6, 1}},
      {{.kind = K::hard_swish}, {0, -1.0 / 3, 0, 7.0 / 24, 5.0 / 3, 6.5}},
      {{.kind = K::silu}, {-0.1025927, -0.2689414, 0, 0.3112297, 1.7615942, 6.4902424}},
      {{.kind = K::gelu}, {-0.0008142, -0.1586553, 0, 0.3457312, 1.9544997, 6.5}},
      {{.kind = K::gelu_tanh}, {-0.0006159, -0.1588080, 0, 0.3457140, 1.9545977, 6.5}},
  };
  for (const auto& [problem, values] : expected) {
    const Tensor y = run_reference(activation(problem, x)).outputs[0];
    for (int i = 0; i < 6; ++i)
      EXPECT_NEAR(y.values[i], values[i], 1e-6) << name_of(problem.kind) << " " << i;
  }
}

// A NaN must stay a NaN, so that a run that diverges shows it. Huge values must not become NaN.
TEST(Activation, KeepsNaNAndSurvivesLargeValues) {
  Tensor x = Random(3).uniform({2, 40});
  x.values[17] = x.values[60] = std::numeric_limits<double>::quiet_NaN();
  x.values[20] = 1e30;
  x.values[21] = -1e4;
  std::vector<Backend> all = backends();
  all.push_back(Backend::reference);
  for (const ActivationProblem& problem : kProblems)
    for (const Backend backend : all) {
      const Tensor y = run(backend, Layout::row_major, activation(problem, x)).outputs[0];
      const std::string what = std::string(name_of(problem.kind)) + " on " + name_of(backend);
      EXPECT_TRUE(std::isnan(y.values[17]) && std::isnan(y.values[60])) << what;
      EXPECT_FALSE(std::isnan(y.values[18]) || std::isnan(y.values[20]) || std::isnan(y.values[21])) << what;
    }
}

TEST(Activation, RefusesParametersThatMakeNoSense) {
  for (const Backend backend : {Backend::reference, Backend::cpu})
    for (const ActivationProblem& problem : {ActivationProblem{.kind = K::clip, .min = 1, .max = 1},
                                             ActivationProblem{.kind = K::leaky_relu, .slope = -0.5f},
                                             ActivationProblem{.kind = K::hard_sigmoid, .slope = 0},
                                             ActivationProblem{.kind = K::affine, .slope = NAN},
                                             ActivationProblem{.kind = K::affine, .offset = INFINITY}}) {
      KernelRequest request{{f32({2, 3})}, {f32({2, 3})}};
      EXPECT_THROW(activation_forward(backend, problem, request), std::invalid_argument) << name_of(backend);
    }
}

}  // namespace
}  // namespace convoy::kernels::testing
