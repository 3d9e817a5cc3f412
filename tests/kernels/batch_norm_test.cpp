// Tests the five operations of batch normalisation one by one, and together as training runs them.
#include "kernels/batch_norm/batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/brief.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {
namespace {

// A layer with its operands (see batch_norm.h). The gradients dy, dy2 and dx2 are not zero even in
// the padding samples at the end of the batch, so that a kernel that reads those samples fails.
struct Layer {
  BatchNormProblem problem = {};
  StepControl control = {};
  Tensor x = {}, gamma = {}, beta = {}, mean = {}, variance = {}, residual = {}, dy = {}, dy2 = {}, dx2 = {};
  std::int64_t channels() const { return x.desc.shape[1]; }
  std::size_t valid_elements() const {
    return static_cast<std::size_t>(x.desc.shape.elements() / x.desc.shape[0] * control.valid);
  }
};

// Makes a layer whose values before the ReLU are not near zero, where backends may round to
// different signs: xhat is near -1 or 1, beta is small, and the residual has the sign of x.
Layer layer_of(Random& random, const Shape& shape, const BatchNormProblem& problem, int valid) {
  const std::int64_t c = shape[1];
  Layer layer{.problem = problem,
              .control = all_valid(valid),
              .x = random.uniform(shape, 1.8, 2.2),
              .gamma = random.uniform({c}, 0.8, 1.2),
              .beta = random.uniform({c}, -0.1, 0.1),
              .mean = random.uniform({c}),
              .variance = random.uniform({c}, 0.5, 2),
              .residual = random.uniform(shape, 0.1, 1),
              .dy = random.uniform(shape),
              .dy2 = random.uniform(shape),
              .dx2 = random.uniform(shape)};
  if (problem.synchronised) layer.control.global_valid += 3;
  const std::int64_t pixels = shape.elements() / shape[0] / c;
  for (std::size_t i = 0; i < layer.x.values.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    const bool negative = (position / (c * pixels) + position % pixels) % 2 == 0;
    if (!negative) continue;
    layer.x.values[i] -= 2;
    layer.residual.values[i] = -layer.residual.values[i];
  }
  return layer;
}

Case statistics(const Layer& l) {
  return {.name = "batch_norm_statistics " + l.x.desc.shape.to_string(),
          .maker = maker_of(batch_norm_statistics, l.problem),
          .inputs = {l.x},
          .outputs = {f64({2, l.channels()})},
          .control = l.control};
}

Case forward(const Layer& l, const Tensor& sums) {
  Case test{.name = "batch_norm_forward " + l.x.desc.shape.to_string(),
            .maker = maker_of(batch_norm_forward, l.problem),
            .inputs = {l.x, sums, l.gamma, l.beta, l.mean, l.variance},
            .outputs = {l.x.desc},
            .control = l.control,
            .updated = {4, 5}};
  if (l.problem.residual) test.inputs.push_back(l.residual);
  if (l.problem.relu_mask) test.outputs.emplace_back(), test.ignored = {1};
  return test;
}

Case inference(const Layer& l) {
  Case test{.name = "batch_norm_inference " + l.x.desc.shape.to_string(),
            .maker = maker_of(batch_norm_inference, l.problem),
            .inputs = {l.x, l.gamma, l.beta, l.mean, l.variance},
            .outputs = {l.x.desc}};
  if (l.problem.residual) test.inputs.push_back(l.residual);
  return test;
}

Case reduce(const Layer& l, const Tensor& sums, const Tensor& y) {
  Case test{.name = "batch_norm_backward_reduce " + l.x.desc.shape.to_string(),
            .maker = maker_of(batch_norm_backward_reduce, l.problem),
            .inputs = {l.x, sums, l.gamma, l.beta, l.dy},
            .outputs = {f64({2, l.channels()}), f32({l.channels()}), f32({l.channels()})},
            .control = l.control,
            .tolerance = 5e-6};
  if (l.problem.relu && l.problem.residual) test.inputs.push_back(y);
  if (l.problem.second_gradient) test.inputs.push_back(l.dy2);
  if (l.problem.write_gradient) test.outputs.push_back(l.x.desc);
  return test;
}

Case backward(const Layer& l, const Tensor& sums, const Tensor& gradient, const Tensor& dsums) {
  Case test{.name = "batch_norm_backward " + l.x.desc.shape.to_string(),
            .maker = maker_of(batch_norm_backward, l.problem),
            .inputs = {l.x, sums, l.gamma, l.beta, gradient, dsums},
            .outputs = {l.x.desc},
            .control = l.control,
            .tolerance = 5e-6};
  if (l.problem.second_input_gradient) test.inputs.push_back(l.dx2);
  return test;
}

std::vector<Backend> backends_and_reference() {
  std::vector<Backend> all = backends();
  all.push_back(Backend::reference);
  return all;
}

std::vector<BatchNormProblem> problems() {
  std::vector<BatchNormProblem> list;
  for (int flags = 0; flags < 64; ++flags) {
    const BatchNormProblem problem{.relu = (flags & 1) != 0,
                                   .residual = (flags & 2) != 0,
                                   .synchronised = (flags & 4) != 0,
                                   .second_gradient = (flags & 8) != 0,
                                   .write_gradient = (flags & 16) != 0,
                                   .second_input_gradient = (flags & 32) != 0};
    if ((problem.second_gradient || (problem.relu && problem.residual)) && !problem.write_gradient) continue;
    list.push_back(problem);
  }
  for (int kind = 0; kind < kActivationKinds; ++kind)
    for (int flags = 0; flags < 4; ++flags)
      list.push_back({.activation = ActivationProblem{.kind = static_cast<ActivationKind>(kind)},
                      .synchronised = kind % 2 == 0,
                      .second_gradient = (flags & 1) != 0,
                      .write_gradient = (flags & 1) != 0,
                      .second_input_gradient = (flags & 2) != 0});
  return list;
}

TEST(BatchNorm, MatchesTheReference) {
  Random random(1);
  int turn = 0;
  for (const BatchNormProblem& problem : problems())
    for (const Shape& shape :
         {Shape{4, 3, 5, 7}, Shape{3, 16, 4, 4}, Shape{4, 6, 2, 2}, Shape{5, 37, 3, 2}, Shape{6, 20}})
      for (const int missing : {0, 2}) {
        // In a brief run, every tenth case is enough to reach every kernel.
        if (test::brief() && turn++ % 10 != 0) continue;
        const Layer l = layer_of(random, shape, problem, static_cast<int>(shape[0]) - missing);
        expect_matches_reference(statistics(l), backends());
        expect_matches_reference(inference(l), backends());
        Layer linear = l;
        linear.problem.linear = true;
        expect_matches_reference(inference(linear), backends());
        const Tensor sums = operand(run_reference(statistics(l)).outputs[0]);
        expect_matches_reference(forward(l, sums), backends());
        const Case reduction = reduce(l, sums, operand(run_reference(forward(l, sums)).outputs[0]));
        expect_matches_reference(reduction, backends());
        const Result reduced = run_reference(reduction);
        const Tensor gradient = problem.write_gradient ? operand(reduced.outputs[3]) : l.dy;
        expect_matches_reference(backward(l, sums, gradient, operand(reduced.outputs[0])), backends());
      }
}

// CUDA treats two, four or eight pixels of these images as one pixel with more channels, so that
// rows are multiples of 16 bytes. It must then add up several columns for the sum of one channel.
// The last shape has an odd number of pixels, so its pixels cannot be joined.
TEST(BatchNorm, MatchesTheReferenceInRowsOfJoinedPixels) {
  if (!std::ranges::count(backends(), Backend::cuda)) GTEST_SKIP() << "no CUDA device";
  Random random(9);
  const BatchNormProblem list[] = {
      {.relu = true, .second_input_gradient = true},
      {.relu = true, .residual = true, .second_gradient = true, .write_gradient = true},
      {.activation = ActivationProblem{.kind = ActivationKind::hard_swish}}};
  for (const BatchNormProblem& problem : list)
    for (const Shape& shape : {Shape{9, 58, 14, 14}, Shape{5, 116, 7, 6}, Shape{3, 20, 1, 6},
                               Shape{3, 5, 4, 8}, Shape{3, 58, 7, 7}})
      for (const int missing : {0, 2}) {
        const Layer l = layer_of(random, shape, problem, static_cast<int>(shape[0]) - missing);
        expect_matches_reference(statistics(l), {Backend::cuda});
        expect_matches_reference(inference(l), {Backend::cuda});
        const Tensor sums = operand(run_reference(statistics(l)).outputs[0]);
        expect_matches_reference(forward(l, sums), {Backend::cuda});
        const Case reduction = reduce(l, sums, operand(run_reference(forward(l, sums)).outputs[0]));
        expect_matches_reference(reduction, {Backend::cuda});
        const Result reduced = run_reference(reduction);
        const Tensor gradient = problem.write_gradient ? operand(reduced.outputs[3]) : l.dy;
        expect_matches_reference(backward(l, sums, gradient, operand(reduced.outputs[0])), {Backend::cuda});
      }
}

// A batch norm with an activation of its own must give the outputs and gradients of a batch norm
// followed by a layer for the activation.
TEST(BatchNorm, AnActivationIsThatOfALayerAfterIt) {
  Random random(7);
  for (int kind = 0; kind < kActivationKinds; ++kind)
    for (const Shape& shape : {Shape{4, 3, 5, 7}, Shape{3, 16, 4, 4}, Shape{6, 20}})
      for (const Backend backend : backends_and_reference()) {
        const ActivationProblem activation{.kind = static_cast<ActivationKind>(kind)};
        const Layout layout = layouts_of(backend).front();
        Layer plain = layer_of(random, shape, {}, static_cast<int>(shape[0]) - 1);
        Layer fused = plain;
        fused.problem.activation = activation;
        const auto compute = [&](const Case& test) { return run(backend, layout, test); };
        const Tensor sums = operand(compute(statistics(plain)).outputs[0]);
        const Tensor normalised = operand(compute(forward(plain, sums)).outputs[0]);
        const auto activated = [&](const Tensor& x) {
          return compute({.name = "activation",
                          .maker = maker_of(activation_forward, activation),
                          .inputs = {x},
                          .outputs = {x.desc}})
              .outputs[0];
        };
        const Tensor y = activated(normalised);
        expect_close(compute(forward(fused, sums)).outputs[0], y, 2e-6, "y");
        expect_close(compute(inference(fused)).outputs[0],
                     activated(operand(compute(inference(plain)).outputs[0])), 2e-6, "y of inference");
        plain.dy = operand(
            compute(
                {.name = "activation",
                 .maker = maker_of(activation_backward, activation),
                 .inputs = {activation_backward_reads_y(activation.kind) ? operand(y) : normalised, fused.dy},
                 .outputs = {fused.dy.desc}})
                .outputs[0]);
        const Result reduced = compute(reduce(plain, sums, {})), by_fused = compute(reduce(fused, sums, {}));
        for (int i = 0; i < 3; ++i) expect_close(by_fused.outputs[i], reduced.outputs[i], 2e-5, "sums");
        const Tensor dsums = operand(reduced.outputs[0]);
        expect_close(compute(backward(fused, sums, fused.dy, dsums)).outputs[0],
                     compute(backward(plain, sums, plain.dy, dsums)).outputs[0], 2e-5, "dx");
      }
}

// Instead of y, backward may read the mask that forward wrote. The gradient must have the same bits
// in both cases, and so must the sums, unless several blocks add them in another order.
TEST(BatchNorm, AMaskIsAsGoodAsTheOutput) {
  Random random(6);
  for (const bool second : {false, true})
    for (const Shape& shape : {Shape{4, 3, 5, 7}, Shape{3, 16, 4, 4}, Shape{5, 36, 3, 2}, Shape{3, 58, 2, 6},
                               Shape{6, 20}, Shape{8, 136, 28, 28}}) {
      BatchNormProblem problem{
          .relu = true, .residual = true, .second_gradient = second, .write_gradient = true};
      Layer l = layer_of(random, shape, problem, static_cast<int>(shape[0]) - 1);
      const Tensor sums = operand(run_reference(statistics(l)).outputs[0]);
      Layer masked = l;
      masked.problem.relu_mask = true;
      for (const Backend backend : backends_and_reference()) {
        if (backend == Backend::cpu) continue;
        const Layout layout = layouts_of(backend).front();
        for (const bool half : {false, true}) {
          if (half && backend == Backend::reference) continue;
          const auto compute = [&](const Case& test) {
            return run(backend, layout, half ? in_bf16(test) : test);
          };
          const Result y = compute(forward(l, sums)), with_mask = compute(forward(masked, sums));
          EXPECT_EQ(with_mask.outputs[0].values, y.outputs[0].values);
          const Result plain = compute(reduce(l, sums, operand(y.outputs[0])));
          const Result by_mask = compute(reduce(masked, sums, with_mask.outputs[1]));
          EXPECT_EQ(by_mask.outputs[3].values, plain.outputs[3].values);
          for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t c = 0; c < plain.outputs[i].values.size(); ++c) {
              const double expected = plain.outputs[i].values[c], bound = shape[1] == 136 ? 1e-2 : 0;
              EXPECT_NEAR(by_mask.outputs[i].values[c], expected, bound) << "output " << i << ", " << c;
            }
        }
      }
    }
}

struct Gradients {
  std::vector<double> x, gamma, beta, residual;
};

Gradients gradients_of(const Layer& l) {
  const Tensor sums = operand(run_reference(statistics(l)).outputs[0]);
  const Result reduced = run_reference(reduce(l, sums, operand(run_reference(forward(l, sums)).outputs[0])));
  const Tensor g = l.problem.write_gradient ? operand(reduced.outputs[3]) : l.dy;
  const Tensor dx = run_reference(backward(l, sums, g, operand(reduced.outputs[0]))).outputs[0];
  return {dx.values, reduced.outputs[1].values, reduced.outputs[2].values, g.values};
}

// Differentiates statistics and forward together, because a sample also changes the statistics.
TEST(BatchNorm, BackwardIsTheDerivative) {
  Random random(2);
  for (const BatchNormProblem& problem : problems()) {
    Layer l = layer_of(random, {5, 2, 2, 3}, problem, 4);
    // With a single rank, `synchronised` must change nothing.
    l.control.global_valid = l.control.valid;
    const auto loss = [&](const std::vector<Tensor>& inputs) {
      Layer moved = l;
      moved.x = inputs[0], moved.gamma = inputs[1], moved.beta = inputs[2], moved.residual = inputs[3];
      const Tensor y =
          run_reference(forward(moved, operand(run_reference(statistics(moved)).outputs[0]))).outputs[0];
      double sum = 0;
      for (std::size_t i = 0; i < l.valid_elements(); ++i)
        sum += (l.dy.values[i] + (problem.second_gradient ? l.dy2.values[i] : 0)) * y.values[i] +
               (problem.second_input_gradient ? l.dx2.values[i] * moved.x.values[i] : 0);
      return sum;
    };
    const std::vector<Tensor> inputs = {l.x, l.gamma, l.beta, l.residual};
    const Gradients gradients = gradients_of(l);
    const std::string what =
        "relu " + std::to_string(problem.relu) + " residual " + std::to_string(problem.residual);
    expect_gradient(gradients.x, central_differences(loss, inputs, 0), what + " dx");
    expect_gradient(gradients.gamma, central_differences(loss, inputs, 1), what + " dgamma");
    expect_gradient(gradients.beta, central_differences(loss, inputs, 2), what + " dbeta");
    if (problem.residual && problem.write_gradient)
      expect_gradient(gradients.residual, central_differences(loss, inputs, 3), what + " dresidual");
  }
}

Tensor samples(const Tensor& whole, std::int64_t first, std::int64_t count) {
  Tensor part{whole.desc, {}, {}};
  const std::int64_t sample = whole.desc.shape.elements() / whole.desc.shape[0];
  part.desc.shape[0] = count;
  part.values.assign(whole.values.begin() + first * sample, whole.values.begin() + (first + count) * sample);
  return part;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor sum = operand(a);
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

// With running statistics, y = a x + b in each channel, and inference with `linear` set gives a x.
// If x changes by d, y must therefore change by the linear result for d.
TEST(BatchNorm, LinearInferenceIsTheDerivativeOfInference) {
  Random random(8);
  Layer l = layer_of(random, {2, 3, 4, 4}, {}, 2);
  const Result before = run_reference(inference(l));
  Layer moved = l, linear = l;
  for (std::size_t i = 0; i < l.x.values.size(); ++i) moved.x.values[i] += l.dy.values[i];
  linear.problem.linear = true;
  linear.x = l.dy;
  const Result after = run_reference(inference(moved)), change = run_reference(inference(linear));
  for (std::size_t i = 0; i < l.x.values.size(); ++i)
    EXPECT_NEAR(after.outputs[0].values[i] - before.outputs[0].values[i], change.outputs[0].values[i], 1e-5);
}

TEST(BatchNorm, SynchronisedRanksAreOneRank) {
  Random random(3);
  for (const Backend backend : backends_and_reference()) {
    const auto compute = [&](const Case& test) { return run(backend, layouts_of(backend).front(), test); };
    const BatchNormProblem problem{.relu = true,
                                   .residual = true,
                                   .synchronised = true,
                                   .write_gradient = true,
                                   .second_input_gradient = true};
    Layer whole = layer_of(random, {5, 18, 3, 4}, problem, 5);
    whole.control.global_valid = 5;
    const auto part_of = [&](std::int64_t first, int count) {
      Layer part = whole;
      part.control.valid = count;
      for (Tensor Layer::*member : {&Layer::x, &Layer::residual, &Layer::dy, &Layer::dy2, &Layer::dx2})
        part.*member = samples(whole.*member, first, count);
      return part;
    };
    const Layer parts[2] = {part_of(0, 3), part_of(3, 2)};
    const Tensor sums = operand(compute(statistics(whole)).outputs[0]);
    const Tensor added =
        sum_of(compute(statistics(parts[0])).outputs[0], compute(statistics(parts[1])).outputs[0]);
    expect_close(added, sums, 1e-6, "sums");
    const Result y = compute(forward(whole, sums));
    const Result reduced = compute(reduce(whole, sums, operand(y.outputs[0])));
    const Tensor dx =
        compute(backward(whole, sums, operand(reduced.outputs[3]), operand(reduced.outputs[0]))).outputs[0];
    Result part_reduced[2];
    for (int r = 0; r < 2; ++r) {
      const Result part_y = compute(forward(parts[r], added));
      expect_close(part_y.outputs[0], samples(y.outputs[0], r * 3, 3 - r), 1e-5, "y");
      expect_close(part_y.inputs[4], y.inputs[4], 1e-6, "running mean");
      expect_close(part_y.inputs[5], y.inputs[5], 1e-6, "running variance");
      part_reduced[r] = compute(reduce(parts[r], added, operand(part_y.outputs[0])));
    }
    const Tensor dsums = sum_of(part_reduced[0].outputs[0], part_reduced[1].outputs[0]);
    for (int i = 1; i <= 2; ++i)
      expect_close(sum_of(part_reduced[0].outputs[i], part_reduced[1].outputs[i]), reduced.outputs[i], 1e-5,
                   "dgamma, dbeta");
    for (int r = 0; r < 2; ++r)
      expect_close(compute(backward(parts[r], added, operand(part_reduced[r].outputs[3]), dsums)).outputs[0],
                   samples(dx, r * 3, 3 - r), 1e-5, "dx");
  }
}

// Sums in float would lose digits of the variance if the mean is far above the standard deviation.
TEST(BatchNorm, KeepsTheVarianceFarFromZero) {
  Random random(11);
  std::vector<Shape> shapes{{17, 24, 16, 16}, {257, 20}, {9, 18, 14, 14}};
  // A thread of a GPU sums more than four rows only if a shape has many rows, like this one.
  if (std::ranges::count(backends(), Backend::cuda)) shapes.push_back({60, 64, 32, 32});
  for (const Shape& shape : shapes)
    for (const double ratio : kRatios) {
      Layer l = layer_of(random, shape, {.momentum = 1}, static_cast<int>(shape[0]) - 1);
      // The standard deviation is 1.
      l.x = random.uniform(shape, ratio - std::sqrt(3.0), ratio + std::sqrt(3.0));
      const auto check = [&](Backend backend, Layout layout, bool half) {
        const Case test = half ? in_bf16(statistics(l)) : statistics(l);
        const std::string what = test.name + " on " + name_of(backend) + ", ratio " + std::to_string(ratio);
        const Tensor sums = run(backend, layout, test).outputs[0];
        expect_variance(sums, test.inputs[0], l.control.valid, half ? DType::bf16 : DType::f32, what);
        if (half) return;
        // With a momentum of 1, the running variance is the batch's unbiased variance.
        const Tensor variance = run(backend, layout, forward(l, operand(sums))).inputs[5];
        const Tensor exact = run_reference(forward(l, batch_norm_sums(l.x, l.control.valid))).inputs[5];
        for (std::size_t c = 0; c < exact.values.size(); ++c)
          EXPECT_NEAR(variance.values[c], exact.values[c], 2e-6 * exact.values[c]) << what;
      };
      for (const Backend backend : backends_and_reference())
        for (const Layout layout : layouts_of(backend)) {
          check(backend, layout, false);
          // At a ratio of 1000, bf16 does not resolve the standard deviation.
          if (backend == Backend::cuda && ratio < 1000) check(backend, layout, true);
        }
    }
}

// A rank whose whole batch is padding must not divide by zero, nor change its running statistics.
TEST(BatchNorm, BatchWithoutSamples) {
  Random random(4);
  Layer l = layer_of(random, {2, 3, 2, 2}, {.relu = true}, 0);
  l.control.global_valid = 4;
  std::fill(l.x.values.begin(), l.x.values.end(), 0.0);
  for (const Backend backend : backends_and_reference()) {
    const auto compute = [&](const Case& test) { return run(backend, layouts_of(backend).front(), test); };
    const Result sums = compute(statistics(l));
    EXPECT_EQ(sums.outputs[0].values, std::vector<double>(6, 0.0));
    const Result y = compute(forward(l, operand(sums.outputs[0])));
    for (const double value : y.outputs[0].values) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(y.inputs[4].values, l.mean.values);
    EXPECT_EQ(y.inputs[5].values, l.variance.values);
    const Result reduced = compute(reduce(l, operand(sums.outputs[0]), {}));
    EXPECT_EQ(reduced.outputs[1].values, std::vector<double>(3, 0.0));
    const Case last = backward(l, operand(sums.outputs[0]), l.dy, operand(reduced.outputs[0]));
    EXPECT_EQ(compute(last).outputs[0].values, std::vector<double>(24, 0.0));
  }
}

// The expected values are those of torch.nn.BatchNorm2d(1) on [1, 2, 3, 6] in PyTorch 1.13: y, the
// running mean and the unbiased running variance.
TEST(BatchNorm, AgreesWithPyTorch) {
  Layer l{.control = all_valid(2),
          .x = floats({2, 1, 1, 2}, {1, 2, 3, 6}),
          .gamma = floats({1}, {1}),
          .beta = floats({1}, {0}),
          .mean = floats({1}, {0}),
          .variance = floats({1}, {1})};
  for (const Backend backend : backends_and_reference()) {
    const Layout layout = layouts_of(backend).front();
    const Tensor sums = operand(run(backend, layout, statistics(l)).outputs[0]);
    EXPECT_EQ(sums.values, (std::vector<double>{12, 50}));
    const Result result = run(backend, layout, forward(l, sums));
    const double expected[] = {-1.0690434, -0.5345217, 0, 1.6035651};
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(result.outputs[0].values[i], expected[i], 1e-6);
    EXPECT_NEAR(result.inputs[4].values[0], 0.3, 1e-6);
    EXPECT_NEAR(result.inputs[5].values[0], 1.3666667, 1e-6);
  }
}

// A NaN must stay a NaN, so that a run that diverges shows it. A careless max(NaN, 0) would give 0.
TEST(BatchNorm, KeepsNaN) {
  Random random(5);
  Layer l = layer_of(random, {2, 18, 3, 3}, {.relu = true}, 2);
  const Tensor sums = operand(run_reference(statistics(l)).outputs[0]);
  l.x.values[20] = std::numeric_limits<double>::quiet_NaN();
  for (const Backend backend : {Backend::reference, Backend::cpu})
    for (const Layout layout : layouts_of(backend)) {
      const Tensor y = run(backend, layout, forward(l, sums)).outputs[0];
      EXPECT_TRUE(std::isnan(y.values[20])) << name_of(backend) << int(layout);
      EXPECT_FALSE(std::isnan(y.values[21]));
    }
}

TEST(BatchNorm, RefusesABackwardThatCannotKnowTheGradient) {
  EXPECT_THROW(require_batch_norm_flags("test", {.relu = true, .residual = true}), std::invalid_argument);
  EXPECT_THROW(require_batch_norm_flags("test", {.second_gradient = true}), std::invalid_argument);
  EXPECT_THROW(require_batch_norm_flags("test", {.relu = true, .relu_mask = true}), std::invalid_argument);
  for (BatchNormProblem problem : {BatchNormProblem{.relu = true}, BatchNormProblem{.residual = true},
                                   BatchNormProblem{.residual = true, .write_gradient = true}}) {
    EXPECT_NO_THROW(require_batch_norm_flags("test", problem));
    problem.activation = ActivationProblem{};
    EXPECT_THROW(require_batch_norm_flags("test", problem), std::invalid_argument);
    EXPECT_THROW(require_batch_norm_activation("test", problem), std::invalid_argument);
  }
  EXPECT_THROW(require_batch_norm_activation("test", {.activation = ActivationProblem{.min = 1, .max = 1}}),
               std::invalid_argument);
  EXPECT_NO_THROW(require_batch_norm_flags("test", {.relu = true, .residual = true, .write_gradient = true}));
}

}  // namespace
}  // namespace convoy::kernels::testing
