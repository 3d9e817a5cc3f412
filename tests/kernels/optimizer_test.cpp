// Tests the optimizers and the squared norm.
#include "kernels/optimizer/optimizer.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

struct Rule {
  OptimizerProblem problem;
  Hyperparameters numbers;
};

// Makes the update of a step after the first. `buffers` are the parameters, gradients and states.
Case update(const Rule& rule, std::vector<Tensor> buffers) {
  const OptimizerProblem& problem = rule.problem;
  Case test{
      .name = "optimizer_update kind " + std::to_string(int(problem.kind)),
      .maker = [=](Backend b, KernelRequest& request) { return optimizer_update(b, rule.problem, request); },
      .inputs = std::move(buffers),
      .updated = {0}};
  for (int i = 2; i < optimizer_inputs(problem); ++i) test.updated.push_back(i);
  test.control.hyperparameters = rule.numbers;
  test.control.learning_rate = 0.1f;
  test.control.gradient_scale = 0.5f;
  test.control.step = 3;
  return test;
}

std::vector<Tensor> random_buffers(Random& random, const OptimizerProblem& problem, std::int64_t count) {
  std::vector<Tensor> buffers = {random.uniform({count}), random.uniform({count})};
  for (int i = 2; i < optimizer_inputs(problem); ++i) buffers.push_back(random.uniform({count}, 0, 1));
  return buffers;
}

std::vector<Rule> rules() {
  const OptimizerProblem sgd, plain{.velocity = false}, lars{.kind = OptimizerKind::lars},
      adamw{.kind = OptimizerKind::adamw};
  const auto averaged = [](OptimizerProblem problem) {
    problem.averages = true;
    return problem;
  };
  return {{sgd, {.weight_decay = 0.01f}},
          {sgd, {.weight_decay = 0.01f, .nesterov = 1}},
          {plain, {.weight_decay = 0.01f}},
          {lars, {.weight_decay = 0.01f, .trust_coefficient = 0.5f}},
          {adamw, {.weight_decay = 0.01f}},
          {averaged(sgd), {.average_decay = 0.75}},
          {averaged(plain), {.average_decay = 0.9}},
          {averaged(lars), {.trust_coefficient = 0.5f, .average_decay = 0.9}},
          {averaged(adamw), {.beta1 = 0.8f, .beta2 = 0.99f, .epsilon = 1e-3f, .average_decay = 0.9}}};
}

// The segments have many sizes and gaps between them. One is so long that kernels divide it.
TEST(Optimizer, MatchesTheReference) {
  Random random(1);
  for (Rule rule : rules()) {
    rule.problem.segments = {{3, 1, true, true},
                             {16, 40000, true, true},
                             {40016, 17, false, false},
                             {40040, 999, false, true, 0.25f},
                             {41100, 31, 0.5f, false}};
    const Case test = update(rule, random_buffers(random, rule.problem, 41200));
    expect_matches_reference(test);
    for (const Backend b : {Backend::reference, Backend::cpu}) {
      const Result result = run(b, Layout::row_major, test);
      for (const int gap : {0, 2, 4, 15, 40033, 40039, 41039, 41131, 41199})
        EXPECT_EQ(result.inputs[0].values[gap], test.inputs[0].values[gap])
            << "wrote between segments at " << gap;
    }
  }
}

// The expected values come from three steps of torch.optim (PyTorch 1.13) that start at [1, -2,
// 0.5], with lr 0.1 and weight_decay 0.01.
TEST(Optimizer, AgreesWithPyTorch) {
  const std::vector<double> gradients[] = {{0.1, 0.2, -0.3}, {0.4, -0.5, 0.6}, {-0.7, 0.8, 0.9}};
  const std::vector<double> expected[] = {{0.961372793, -2.02796364, 0.374443442},
                                          {0.982422173, -2.0691843, 0.265460312},
                                          {1.01706302, -2.04401588, 0.378501534},
                                          {},
                                          {0.829222262, -2.08355093, 0.493591905}};
  const std::vector<Rule> list = rules();
  for (std::size_t kind = 0; kind < list.size(); ++kind) {
    Rule rule = list[kind];
    if (rule.problem.kind == OptimizerKind::lars || rule.problem.averages) continue;
    rule.problem.segments = {{0, 3, true, true}};
    for (const Backend b : {Backend::reference, Backend::cpu}) {
      std::vector<Tensor> buffers = {floats({3}, {1, -2, 0.5}), floats({3}, {0, 0, 0})};
      for (int i = 0; i < optimizer_states(rule.problem); ++i) buffers.push_back(floats({3}, {0, 0, 0}));
      for (int step = 0; step < 3; ++step) {
        buffers[1].values = gradients[step];
        Case test = update(rule, buffers);
        test.control.step = static_cast<std::uint64_t>(step);
        test.control.gradient_scale = 1;
        const Result result = run(b, Layout::row_major, test);
        for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].values = result.inputs[i].values;
      }
      for (int i = 0; i < 3; ++i)
        EXPECT_NEAR(buffers[0].values[i], expected[kind][i], 1e-6) << name_of(b) << kind;
    }
  }
}

// The expected values are worked out by hand. The average is a copy of the parameters in step 0. In
// step 1 it moves a quarter of the way to the updated parameters.
TEST(Optimizer, AveragesFollowTheUpdatedParameters) {
  const Rule rule{{.velocity = false, .averages = true, .segments = {{0, 2, true, true}}},
                  {.average_decay = 0.75}};
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    std::vector<Tensor> buffers = {floats({3}, {1, 2, 5}), floats({3}, {2, 4, 6}),
                                   floats({3}, {100, 100, 100})};
    std::vector<std::vector<double>> averages;
    for (int step = 0; step < 2; ++step) {
      Case test = update(rule, buffers);
      test.control.step = static_cast<std::uint64_t>(step);
      test.control.gradient_scale = 1;
      const Result result = run(b, Layout::row_major, test);
      for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].values = result.inputs[i].values;
      averages.push_back(buffers[2].values);
    }
    EXPECT_EQ(averages[0][0], 1 - 0.1f * 2) << "a copy, to the bit";
    EXPECT_NEAR(averages[1][0], 0.8 + 0.25 * (0.6 - 0.8), 1e-7);
    EXPECT_NEAR(averages[1][1], 1.6 + 0.25 * (1.2 - 1.6), 1e-7);
    EXPECT_EQ(averages[1][2], 100) << "of no segment";
  }
}

Case average(Random& random, std::int64_t count, std::uint64_t step) {
  Case test{.name = "moving_average",
            .maker = [](Backend b, KernelRequest& request) { return moving_average(b, {}, request); },
            .inputs = {random.uniform({count}), random.uniform({count})},
            .updated = {1}};
  test.control.step = step;
  test.control.hyperparameters.average_decay = 0.99;
  return test;
}

TEST(MovingAverage, MatchesTheReference) {
  Random random(5);
  for (const std::int64_t count : {1, 7, 16384, 40001})
    for (const std::uint64_t step : {0, 1, 1000}) {
      const Case test = average(random, count, step);
      expect_matches_reference(test);
      if (step > 0) continue;
      EXPECT_EQ(run(Backend::cpu, Layout::row_major, test).inputs[1].values, test.inputs[0].values);
    }
}

// The expected values are worked out by hand for the first segment, with learning rate lr = 0.1,
// weight decay wd = 0.2 and gradient scale 0.5. Its norms are |w| = 5 and |g| = 0.5 * 10 = 5, so
//   trust = 0.1 * 5 / (5 + 0.2 * 5)
//   v = lr trust (g + wd w)
TEST(Optimizer, LarsScalesBySegmentNorms) {
  const Rule rule{{.kind = OptimizerKind::lars,
                   .segments = {{0, 2, true, true}, {2, 1, true, false}, {3, 1, true, true}}},
                  {.weight_decay = 0.2f, .trust_coefficient = 0.1f}};
  const Case test =
      update(rule, {floats({4}, {3, 4, 2, 0}), floats({4}, {6, 8, 2, 1}), floats({4}, {0, 0, 0, 0})});
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const std::vector<double> w = run(b, Layout::row_major, test).inputs[0].values;
    const double trust = 0.1 * 5 / 6;
    EXPECT_NEAR(w[0], 3 - 0.1 * trust * (3 + 0.2 * 3), 1e-6);
    EXPECT_NEAR(w[1], 4 - 0.1 * trust * (4 + 0.2 * 4), 1e-6);
    EXPECT_NEAR(w[2], 2 - 0.1 * (1 + 0.2 * 2), 1e-6) << "adapt is off";
    EXPECT_NEAR(w[3], 0 - 0.1 * 0.5, 1e-6) << "a parameter of norm zero must be able to leave zero";
  }
}

// The rate of a segment (the range of one parameter) must multiply the learning rate. A rate of 0.5
// must give the same bits as a rate of 1 with half the learning rate.
TEST(Optimizer, ASegmentsRateIsAFactorOfTheLearningRate) {
  Random random(7);
  for (Rule rule : rules()) {
    rule.problem.segments = {{0, 50, true, true, 0.5f}};
    Case test = update(rule, random_buffers(random, rule.problem, 50));
    for (const Backend b : {Backend::reference, Backend::cpu}) {
      const Result scaled = run(b, Layout::row_major, test);
      rule.problem.segments[0].rate = 1;
      Case halved = update(rule, test.inputs);
      halved.control.learning_rate *= 0.5f;
      const Result expected = run(b, Layout::row_major, halved);
      for (std::size_t i = 0; i < test.inputs.size(); ++i)
        EXPECT_EQ(scaled.inputs[i].values, expected.inputs[i].values) << name_of(b) << i;
    }
  }
}

// The decay of a segment (the range of one parameter) must multiply the weight decay.
TEST(Optimizer, ASegmentsDecayIsAFactorOfTheWeightDecay) {
  Random random(8);
  for (Rule rule : rules()) {
    rule.problem.segments = {{0, 50, 0.5f, true}};
    const Case test = update(rule, random_buffers(random, rule.problem, 50));
    for (const Backend b : {Backend::reference, Backend::cpu}) {
      const Result scaled = run(b, Layout::row_major, test);
      Rule halved = rule;
      halved.problem.segments[0].decay = 1;
      halved.numbers.weight_decay *= 0.5f;
      const Result expected = run(b, Layout::row_major, update(halved, test.inputs));
      for (std::size_t i = 0; i < test.inputs.size(); ++i)
        EXPECT_EQ(scaled.inputs[i].values, expected.inputs[i].values) << name_of(b) << i;
    }
  }
}

// The expected values are worked out by hand. A gradient of norm 5 is scaled by 0.4 if the limit is
// 2, and by 1 if the limit is 10.
TEST(ClipScale, GivesTheGradientTheLargestNorm) {
  for (const auto& [largest, expected] : {std::pair{2.0, 0.4}, std::pair{10.0, 1.0}}) {
    Case test{.name = "clip_scale",
              .maker = [](Backend b, KernelRequest& request) { return clip_scale(b, {}, request); },
              .inputs = {{f64({1}), {25}, {}}},
              .outputs = {f32({1})}};
    test.control.hyperparameters.largest_norm = largest;
    EXPECT_NEAR(run_reference(test).outputs[0].values[0], expected, 1e-7);
    expect_matches_reference(test);
  }
}

Case norm(Tensor gradients) {
  return {.name = "squared_norm",
          .maker = [](Backend b, KernelRequest& request) { return squared_norm(b, {}, request); },
          .inputs = {std::move(gradients)},
          .outputs = {f64({1})},
          .tolerance = 1e-12};
}

TEST(SquaredNorm, MatchesTheReference) {
  Random random(2);
  for (const std::int64_t count : {1, 7, 16384, 16385, 100001})
    expect_matches_reference(norm(random.uniform({count})));
}

// Clipping by the norm must not make parameters depend on the number of threads.
TEST(SquaredNorm, HasTheSameBitsForAnyNumberOfThreads) {
  const Case test = norm(Random(3).uniform({200003}));
  const int threads = omp_get_max_threads();
  std::vector<std::vector<double>> sums;
  for (const int count : {1, 2, 3, 7}) {
    omp_set_num_threads(count);
    sums.push_back(run(Backend::cpu, Layout::row_major, test).outputs[0].values);
  }
  omp_set_num_threads(threads);
  for (const auto& sum : sums) EXPECT_EQ(sum, sums[0]);
}

}  // namespace
}  // namespace convoy::kernels::testing
