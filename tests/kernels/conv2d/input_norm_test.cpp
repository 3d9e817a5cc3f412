// Tests backward_data of a convolution after a batch norm with a ReLU (input_norm). The results are
// the gradient before the ReLU, and its sums, which the batch norm's backward needs.
#include <gtest/gtest.h>

#include <stdexcept>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

struct Shapes {
  Conv2dProblem problem;
  Shape x, weights;
};

// These shapes fill blocks of channels in whole or in part. The last three have a stride, groups
// and a channel count for which no kernel fuses the two operations, so they test the separate pass.
const std::vector<Shapes>& shapes() {
  static const std::vector<Shapes> all = {
      {{.padding = {1, 1}}, {3, 64, 14, 14}, {128, 64, 3, 3}},
      {{}, {2, 256, 9, 7}, {64, 256, 1, 1}},
      {{}, {5, 64, 16, 16}, {256, 64, 1, 1}},
      {{}, {2, 72, 9, 7}, {40, 72, 1, 1}},
      {{.padding = {1, 1}}, {70, 64, 4, 4}, {64, 64, 3, 3}},
      {{.padding = {1, 1}}, {9, 320, 6, 6}, {32, 320, 3, 3}},
      {{.stride = {2, 2}, .padding = {1, 1}}, {2, 64, 9, 9}, {40, 64, 3, 3}},
      {{.padding = {1, 1}, .groups = 2}, {2, 32, 7, 7}, {64, 16, 3, 3}},
      {{.padding = {1, 1}}, {2, 20, 5, 5}, {12, 20, 3, 3}}};
  return all;
}

struct Operands {
  Tensor x, sums, gamma, beta, dy, weights, dy2;
  StepControl control;
};

Operands operands_of(Random& random, const Shapes& shapes, std::int64_t valid) {
  const std::int64_t c = shapes.x[1];
  Operands o{.x = random.uniform(shapes.x, -0.7, 1.3),
             .sums = {},
             .gamma = random.uniform({c}, 0.8, 1.2),
             .beta = random.uniform({c}, -0.1, 0.1),
             .dy = random.uniform(conv2d_output_shape(shapes.problem, shapes.x, shapes.weights)),
             .weights = random.uniform(shapes.weights),
             .dy2 = random.uniform(shapes.x),
             .control = all_valid(valid)};
  o.sums = batch_norm_sums(o.x, valid);
  o.control.global_valid += 1;
  return o;
}

// A backend's fused operation must give the results of its two separate operations.
void expect_that_of_two(Backend backend, bool half, const Operands& o, const Conv2dProblem& plain,
                        const BatchNormProblem& norm) {
  const Layout layout = backend == Backend::cuda ? Layout::channels_last : Layout::row_major;
  const auto compute = [&](const Case& test) { return run(backend, layout, half ? in_bf16(test) : test); };
  const std::int64_t c = o.x.desc.shape[1];
  const std::vector<TensorDesc> sums{f64({2, c}), f32({c}), f32({c})};

  BatchNormProblem masking = norm;
  masking.relu = masking.relu_mask = true;
  const Tensor mask =
      compute({.name = "forward",
               .maker = maker_of(batch_norm_forward, masking),
               .inputs = {o.x, o.sums, o.gamma, o.beta, floats({c}, std::vector<double>(c, 0.0)),
                          floats({c}, std::vector<double>(c, 1.0))},
               .outputs = {o.x.desc, {}},
               .control = o.control,
               .updated = {4, 5},
               .ignored = {1}})
          .outputs[1];

  const Result dx = compute({.name = "backward_data",
                             .maker = maker_of(conv2d_backward_data, plain),
                             .inputs = {o.dy, o.weights},
                             .outputs = {o.x.desc}});
  masking.residual = masking.write_gradient = masking.second_gradient = true;
  Case reduce{.name = "reduce",
              .maker = maker_of(batch_norm_backward_reduce, masking),
              .inputs = {o.x, o.sums, o.gamma, o.beta, operand(dx.outputs[0]), mask, o.dy2},
              .outputs = {sums[0], sums[1], sums[2], o.x.desc},
              .control = o.control};
  const Result expected = compute(reduce);

  Conv2dProblem problem = plain;
  problem.input_norm = norm;
  Case fused{.name = "fused",
             .maker = maker_of(conv2d_backward_data, problem),
             .inputs = {o.dy, o.weights, o.x, o.sums, o.gamma, o.beta, mask, o.dy2},
             .outputs = {o.x.desc, sums[0], sums[1], sums[2]},
             .control = o.control};
  const Result actual = compute(fused);
  double sums_bound = 1e-5, bound = 1e-6;
  if (half)
    // The separate pass reads a gradient that was rounded to bf16, so its sums differ by more.
    sums_bound = 4e-3, bound = 2e-3;
  else if (plain.tf32)
    // Tensor cores truncate sums, so the two results differ by more.
    sums_bound = 1e-4, bound = 2e-5;
  expect_close(actual.outputs[0], expected.outputs[3], bound, "g");
  for (std::size_t i = 0; i < 3; ++i)
    expect_close(actual.outputs[i + 1], expected.outputs[i], sums_bound, "sums " + std::to_string(i));
}

TEST(Conv2dInputNorm, IsTheConvolutionAndTheReduce) {
  Random random(31);
  for (const Shapes& of : shapes())
    for (const std::int64_t missing : {0, 1}) {
      SCOPED_TRACE(of.x.to_string() + " by " + of.weights.to_string() + (missing > 0 ? ", one invalid" : ""));
      const Operands o = operands_of(random, of, of.x[0] - missing);
      const BatchNormProblem norm{.synchronised = missing > 0};
      // The reference takes seconds for large shapes.
      if (of.x.elements() * of.weights.elements() < 20'000'000)
        expect_that_of_two(Backend::reference, false, o, of.problem, norm);
      if (!gpu_present()) continue;
      for (const bool half : {false, true}) expect_that_of_two(Backend::cuda, half, o, of.problem, norm);
      Conv2dProblem tf32 = of.problem;
      tf32.tf32 = true;
      expect_that_of_two(Backend::cuda, false, o, tf32, norm);
    }
}

TEST(Conv2dInputNorm, HasAReluOfItsOwn) {
  KernelRequest request;
  request.inputs.resize(8), request.outputs.resize(4);
  Conv2dProblem problem{.input_relu = true};
  problem.input_norm = BatchNormProblem{};
  EXPECT_THROW(conv2d_backward_data(Backend::reference, problem, request), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
