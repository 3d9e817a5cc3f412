// Tests the CUDA backend on tensors that need many thread blocks, some of them half empty. The
// tests of each operation use small tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/add/add.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/concat/concat.h"
#include "kernels/dropout/dropout.h"
#include "kernels/local_response_norm/local_response_norm.h"
#include "kernels/mix/mix.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pool/pool.h"
#include "kernels/relu/relu.h"
#include "kernels/reorder/reorder.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"
#include "tests/brief.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/mix_support.h"

namespace convoy::kernels::testing {
namespace {

class CudaLarge : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_present()) GTEST_SKIP() << "no GPU here: the CUDA backend was not tested";
  }
  void expect_matches(Case test) { expect_matches_reference(test, {Backend::cuda}); }

  Random random_{2025};
};

// Some shapes have rows of a multiple of 16 bytes, rows shorter than a thread block is wide, one
// channel, an odd number of channels, or many tiles.
const std::vector<Shape> kShapes = {{2, 64, 56, 56}, {2, 160, 31, 33}, {9, 1, 28, 28}, {2, 147, 23, 29},
                                    {2, 2048, 7, 7}, {111, 1000},      {3, 24, 19, 17}};

TEST_F(CudaLarge, Elementwise) {
  for (const Shape& shape : kShapes) {
    const std::string name = shape.to_string();
    expect_matches({.name = "relu_forward " + name,
                    .maker = maker_of(relu_forward, ReluProblem{}),
                    .inputs = {random_.uniform(shape)},
                    .outputs = {f32(shape)},
                    .tolerance = 0});
    expect_matches({.name = "relu_backward " + name,
                    .maker = maker_of(relu_backward, ReluProblem{}),
                    .inputs = {random_.uniform(shape), random_.uniform(shape)},
                    .outputs = {f32(shape)},
                    .tolerance = 0});
    for (const int count : {2, 3, 9}) {
      Case add{.name = "add_forward " + name,
               .maker = maker_of(add_forward, AddProblem{}),
               .outputs = {f32(shape)},
               .tolerance = count > 8 ? 2e-3 : 2e-7};
      for (int i = 0; i < count; ++i) add.inputs.push_back(random_.uniform(shape));
      expect_matches(add);
    }
    Case dropout{.name = "dropout " + name,
                 .maker = maker_of(dropout_forward, DropoutProblem{0.3f, 5}),
                 .inputs = {random_.uniform(shape)},
                 .outputs = {f32(shape)},
                 .control = all_valid(shape[0]),
                 .tolerance = 2e-7};
    dropout.control.seed = 3;
    dropout.control.first_sample = 1ull << 33;
    expect_matches(dropout);
  }
}

struct Norm {
  BatchNormProblem problem;
  Shape shape;
  StepControl control;
  Tensor x, sums, gamma, beta, mean, variance, dy;
};

Norm norm(Random& random, const BatchNormProblem& problem, const Shape& shape) {
  const std::int64_t c = shape[1];
  Norm n{problem,
         shape,
         all_valid(shape[0]),
         random.uniform(shape, -1, 3),
         {},
         random.uniform({c}, 0.5, 1.5),
         random.uniform({c}),
         random.uniform({c}),
         random.uniform({c}, 0.5, 2),
         random.uniform(shape)};
  n.control.valid = static_cast<std::int32_t>(shape[0] - 1);
  n.control.global_valid = static_cast<std::int32_t>(2 * shape[0]);
  const Case statistics{.maker = maker_of(batch_norm_statistics, problem),
                        .inputs = {in_bf16({.inputs = {n.x}}).inputs},
                        .outputs = {f64({2, c})},
                        .control = n.control};
  n.sums = doubles({2, c}, run_reference(statistics).outputs[0].values);
  return n;
}

// Returns kShapes and a shape with so many rows that every block loops several times. In a brief
// run, returns that shape, one with rows of a multiple of 16 bytes and one with an odd number of
// channels.
std::vector<Shape> norm_shapes() {
  std::vector<Shape> shapes = kShapes;
  if (test::brief()) shapes = {{2, 160, 31, 33}, {2, 147, 23, 29}};
  shapes.push_back({24, 64, 56, 56});
  return shapes;
}

TEST_F(CudaLarge, BatchNormForward) {
  for (const Shape& shape : norm_shapes())
    for (const bool residual : {false, true})
      for (const bool synchronised : {false, true}) {
        if (shape[0] == 24 && (residual || synchronised)) continue;
        if (shape[0] != 24 && test::brief() && synchronised) continue;
        const BatchNormProblem problem{.relu = residual, .residual = residual, .synchronised = synchronised};
        const Norm n = norm(random_, problem, shape);
        const std::string name = "batch_norm " + shape.to_string();
        expect_matches({.name = name + " statistics",
                        .maker = maker_of(batch_norm_statistics, problem),
                        .inputs = {n.x},
                        .outputs = {f64({2, shape[1]})},
                        .control = n.control});
        Case forward{.name = name + " forward",
                     .maker = maker_of(batch_norm_forward, problem),
                     .inputs = {n.x, n.sums, n.gamma, n.beta, n.mean, n.variance},
                     .outputs = {f32(shape)},
                     .control = n.control,
                     .updated = {4, 5}};
        Case inference{.name = name + " inference",
                       .maker = maker_of(batch_norm_inference, problem),
                       .inputs = {n.x, n.gamma, n.beta, n.mean, n.variance},
                       .outputs = {f32(shape)},
                       .control = n.control};
        if (residual) {
          forward.inputs.push_back(random_.uniform(shape));
          inference.inputs.push_back(random_.uniform(shape));
        }
        expect_matches(forward);
        expect_matches(inference);
      }
}

TEST_F(CudaLarge, BatchNormBackward) {
  for (const Shape& shape : norm_shapes())
    for (const auto& [relu, residual, second] : {std::tuple{false, false, false},
                                                 {true, false, false},
                                                 {true, true, false},
                                                 {true, true, true},
                                                 {true, false, true},
                                                 {false, true, true}}) {
      if (shape[0] == 24 && !(relu && second)) continue;
      if (shape[0] == 24 && test::brief() && !residual) continue;
      const BatchNormProblem problem{.relu = relu,
                                     .residual = residual,
                                     .synchronised = second,
                                     .second_gradient = second,
                                     .write_gradient = residual || second,
                                     .second_input_gradient = second};
      const Norm n = norm(random_, problem, shape);
      // If backward computes the ReLU's mask from x, backends may round values near zero to
      // different signs.
      const double tolerance = relu && !residual ? 2e-3 : 5e-6;
      const std::string name = "batch_norm " + shape.to_string();
      Case reduce{.name = name + " backward_reduce",
                  .maker = maker_of(batch_norm_backward_reduce, problem),
                  .inputs = {n.x, n.sums, n.gamma, n.beta, n.dy},
                  .outputs = {f64({2, shape[1]}), f32({shape[1]}), f32({shape[1]})},
                  .control = n.control,
                  // The sum of one channel may be much smaller than its terms, so its relative
                  // error is larger.
                  .tolerance = shape[1] == 1 ? 10 * tolerance : tolerance};
      if (relu && residual) reduce.inputs.push_back(random_.uniform(shape));
      if (second) reduce.inputs.push_back(random_.uniform(shape));
      if (problem.write_gradient) reduce.outputs.push_back(f32(shape));
      expect_matches(reduce);
      const Tensor dsums = doubles({2, shape[1]}, run_reference(reduce).outputs[0].values);
      Case backward{.name = name + " backward",
                    .maker = maker_of(batch_norm_backward, problem),
                    .inputs = {n.x, n.sums, n.gamma, n.beta, n.dy, dsums},
                    .outputs = {f32(shape)},
                    .control = n.control,
                    .tolerance = tolerance};
      if (second) backward.inputs.push_back(random_.uniform(shape));
      expect_matches(backward);
    }
}

TEST_F(CudaLarge, Pool) {
  for (const PoolKind kind : {PoolKind::max, PoolKind::average})
    for (const Shape& shape : kShapes) {
      if (shape.rank() != 4) continue;
      const int h = static_cast<int>(shape[2]), w = static_cast<int>(shape[3]);
      for (const PoolProblem& problem :
           {PoolProblem{.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
            PoolProblem{.kind = kind, .kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true},
            PoolProblem{.kind = kind, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}},
            PoolProblem{.kind = kind},
            PoolProblem{.kind = kind, .kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 0}},
            PoolProblem{.kind = kind, .kernel = {h, w}, .stride = {1, 1}}}) {
        const Shape y = pool_output_shape(problem, shape);
        for (const bool half : {false, true}) {
          Case forward{.name = "pool " + shape.to_string(),
                       .maker = maker_of(pool_forward, problem),
                       .inputs = {random_.uniform(shape)},
                       .outputs = {f32(y)},
                       .tolerance = 4e-6};
          if (kind == PoolKind::max) {
            forward.outputs.emplace_back();
            forward.ignored = {1};
          }
          Case backward{.name = "pool backward " + shape.to_string(),
                        .maker = maker_of(pool_backward, problem),
                        .inputs = {random_.uniform(y)},
                        .outputs = {f32(shape)},
                        .tolerance = 4e-6};
          if (half) {
            forward = in_bf16(forward);
            backward = in_bf16(backward);
          }
          const Result expected = run_reference(forward),
                       actual = run(Backend::cuda, Layout::channels_last, forward);
          expect_same(forward, actual, expected, forward.name);
          Case expected_backward = backward;
          if (kind == PoolKind::max) {
            backward.inputs.insert(backward.inputs.begin(), actual.outputs[1]);
            expected_backward.inputs.insert(expected_backward.inputs.begin(), expected.outputs[1]);
          }
          expect_same(backward, run(Backend::cuda, Layout::channels_last, backward),
                      run_reference(expected_backward), backward.name);
        }
      }
    }
}

TEST_F(CudaLarge, LocalResponseNorm) {
  for (const Shape& shape : kShapes) {
    if (shape.rank() != 4) continue;
    for (const int size : {5, 9, 20})
      for (const bool half : {false, true}) {
        const LocalResponseNormProblem problem{.size = size, .alpha = 1, .k = 2};
        const Tensor y = random_.uniform(shape), dy = random_.uniform(shape);
        Case forward{.name = "local_response_norm " + shape.to_string(),
                     .maker = maker_of(local_response_norm_forward, problem),
                     .inputs = {random_.uniform(shape)},
                     .outputs = {f32(shape), {}},
                     .ignored = {1},
                     .tolerance = 2e-6};
        if (half) forward = in_bf16(forward);
        const Result expected = run_reference(forward),
                     actual = run(Backend::cuda, Layout::channels_last, forward);
        expect_same(forward, actual, expected, forward.name);
        const auto backward = [&](const Result& result, const Tensor& y_of) {
          Case test{.name = "local_response_norm backward " + shape.to_string(),
                    .maker = maker_of(local_response_norm_backward, problem),
                    .inputs = {forward.inputs[0], {f32(shape), y_of.values, {}}, result.outputs[1], dy},
                    .outputs = {f32(shape)},
                    .tolerance = 4e-6};
          return half ? in_bf16(test) : test;
        };
        // Give both backends the same y, though only the reference reads it here.
        Case reference = backward(expected, expected.outputs[0]);
        reference.inputs[1].values = expected.outputs[0].values;
        const Case device = backward(actual, expected.outputs[0]);
        expect_same(device, run(Backend::cuda, Layout::channels_last, device), run_reference(reference),
                    device.name);
      }
  }
}

TEST_F(CudaLarge, Concat) {
  const std::vector<std::vector<std::int64_t>> channels = {{64, 128, 32, 32}, {3, 4, 5}, {2, 6}, {8, 4}};
  for (const auto& parts : channels) {
    std::int64_t sum = 0;
    Case forward{.name = "concat", .maker = maker_of(concat_forward, ConcatProblem{}), .tolerance = 0};
    Case backward{
        .name = "concat backward", .maker = maker_of(concat_backward, ConcatProblem{}), .tolerance = 0};
    for (const std::int64_t part : parts) {
      sum += part;
      forward.inputs.push_back(random_.uniform({9, part, 28, 28}));
      backward.outputs.push_back(f32({9, part, 28, 28}));
    }
    forward.outputs = {f32({9, sum, 28, 28})};
    backward.inputs = {random_.uniform({9, sum, 28, 28})};
    expect_matches(forward);
    expect_matches(backward);
  }
}

TEST_F(CudaLarge, SoftmaxCrossEntropy) {
  for (const Shape& shape : {Shape{256, 1000}, Shape{1000, 10}, Shape{3, 21841}})
    for (const float smoothing : {0.0f, 0.1f}) {
      std::vector<int> classes;
      for (int n = 0; n < shape[0]; ++n)
        classes.push_back(n + 1 == shape[0] ? -1 : random_.pick(0, static_cast<int>(shape[1]) - 1));
      const LossProblem problem;
      const auto smoothed = [smoothing = smoothing](StepControl control) {
        control.hyperparameters.label_smoothing = smoothing;
        return control;
      };
      const Tensor logits = random_.uniform(shape, -8, 8);
      const Case forward{.name = "softmax " + shape.to_string(),
                         .maker = maker_of(softmax_cross_entropy_forward, problem),
                         .inputs = {logits, labels(classes)},
                         .outputs = {f32(shape), f64({kLossMetrics})},
                         .control = smoothed({})};
      expect_matches(forward);
      Case mixed = forward;
      mixed.name += " of mixed samples";
      mixed.inputs.push_back(mix_operand({1, 0.7f}));
      mixed.control = smoothed(all_valid(shape[0] - 1));
      expect_matches(mixed);
      expect_matches({.name = "softmax backward " + shape.to_string(),
                      .maker = maker_of(softmax_cross_entropy_backward, problem),
                      .inputs = {floats(shape, run_reference(forward).outputs[0].values), labels(classes)},
                      .outputs = {f32(shape)},
                      .control = smoothed(all_valid(shape[0]))});
    }
}

TEST_F(CudaLarge, Mix) {
  for (const Shape& shape : {Shape{16, 8, 224, 224}, Shape{7, 4, 61, 53}, Shape{5, 3, 64, 31}})
    for (const MixParameters& mix :
         {MixParameters{}, MixParameters{0.3f, 0.3f}, MixParameters{1, 0.7f, 9, 30, 40, 1}}) {
      Case test{.name = "mix_forward " + shape.to_string(),
                .maker = maker_of(mix_forward, MixProblem{}),
                .inputs = {random_.uniform(shape), mix_operand(mix)},
                .outputs = {f32(shape)},
                .control = all_valid(shape[0] - 1)};
      expect_matches(test);
    }
}

TEST_F(CudaLarge, Optimizer) {
  const Shape flat{1'000'003};
  OptimizerProblem problem;
  problem.segments = {
      {0, 600'000, true, true},
      {600'000, 64, false, false},
      {600'064, 300'001, true, true},
      // This segment starts at no multiple of 16 bytes, and the buffers have a gap at their end.
      {900'065, 99'000, false, true}};
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::adamw})
    for (const bool flag : {false, true}) {
      problem.kind = kind;
      problem.velocity = kind != OptimizerKind::sgd || flag;
      Case test{.name = "optimizer " + std::to_string(int(kind)),
                .maker = maker_of(optimizer_update, problem),
                .inputs = {random_.uniform(flat), random_.uniform(flat)},
                .control = all_valid(4),
                .updated = {0}};
      test.control.learning_rate = 0.1f;
      test.control.gradient_scale = 0.5f;
      test.control.hyperparameters.weight_decay = 1e-2f;
      test.control.hyperparameters.nesterov = flag ? 1 : 0;
      test.control.step = 12;
      for (int i = 0; i < optimizer_states(problem); ++i) {
        test.updated.push_back(static_cast<int>(test.inputs.size()));
        test.inputs.push_back(random_.uniform(flat, 0.01, 1));
      }
      expect_matches(test);
      // With an output, the optimizer also writes a copy of the parameters, rounded to bf16.
      if (!flag) continue;
      Case with_copy = test;
      with_copy.outputs = {{DType::bf16, flat, Layout::any, nullptr}};
      const Result result = run(Backend::cuda, Layout::channels_last, with_copy);
      for (const std::int64_t i : {0, 599'999, 600'064, 900'064, 999'064})
        EXPECT_NEAR(result.outputs[0].values[static_cast<std::size_t>(i)],
                    result.inputs[0].values[static_cast<std::size_t>(i)], 0x1p-8);
    }
  for (const std::int64_t count : {1, 7, 1'000'003, 5'000'000})
    expect_matches({.name = "squared_norm",
                    .maker = maker_of(squared_norm, SquaredNormProblem{}),
                    .inputs = {random_.uniform({count})},
                    .outputs = {f64({1})},
                    .tolerance = 1e-11});
}

TEST_F(CudaLarge, Reorder) {
  for (const auto& [from, to] : {std::pair{Layout::row_major, Layout::channels_last},
                                 {Layout::channels_last, Layout::row_major},
                                 {Layout::channels_last, Layout::channels_last}})
    for (const auto& [from_type, to_type] : {std::pair{DType::f32, DType::f32}, {DType::f32, DType::bf16}}) {
      const Shape shape{5, 70, 45, 41};
      Tensor x = in_bf16({.inputs = {random_.uniform(shape)}}).inputs[0];
      x.desc.layout = from;
      x.desc.dtype = from_type;
      const Case test{.name = "reorder",
                      .maker = maker_of(reorder_forward, ReorderProblem{}),
                      .inputs = {x},
                      .outputs = {{to_type, shape, to, nullptr}}};
      EXPECT_EQ(run(Backend::cuda, Layout::channels_last, test).outputs[0].values, x.values);
    }
}

}  // namespace
}  // namespace convoy::kernels::testing
