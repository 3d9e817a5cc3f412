// Tests convolutions that normalise their input as they read it (input_affine), next to a batch
// norm that writes the convolution's input.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

struct Shapes {
  Shape x, weights;
};

// Channels and filters fill blocks of 64 in whole or in part; there are more rows than a tile has,
// and fewer; some shapes are large enough that the sums of a gradient are split.
const std::vector<Shapes>& shapes() {
  static const std::vector<Shapes> all = {
      {{3, 64, 14, 14}, {256, 64, 1, 1}}, {{2, 8, 5, 3}, {8, 8, 1, 1}},
      {{5, 72, 9, 7}, {40, 72, 1, 1}},    {{2, 136, 8, 8}, {192, 136, 1, 1}},
      {{4, 320, 6, 6}, {96, 320, 1, 1}},  {{9, 32, 28, 28}, {128, 32, 1, 1}},
      {{70, 128, 4, 4}, {520, 128, 1, 1}}};
  return all;
}

class InputAffineTest {
 public:
  InputAffineTest(Backend backend, const Shapes& shapes, std::uint64_t seed, std::int64_t missing)
      : backend_(backend),
        half_(backend == Backend::cuda),
        random_(seed),
        c_(shapes.x[1]),
        x_(random_.uniform(shapes.x, -0.7, 1.3)),
        weights_(random_.uniform(shapes.weights)),
        dy_(random_.uniform(conv2d_output_shape({}, shapes.x, shapes.weights))),
        control_(all_valid(shapes.x[0] - missing)) {
    control_.global_valid += static_cast<std::int32_t>(missing);  // the samples of another rank
    sums_ = batch_norm_sums(x_, shapes.x[0] - missing);
    gamma_ = random_.uniform({c_}, -1.2, 1.2), beta_ = random_.uniform({c_}, -0.5, 0.5);
  }

  // Compares with a batch norm that has this activation.
  void compare(const BatchNormProblem& norm, const InputAffine& limits) {
    const Result normalised = compute({.name = "forward",
                                       .maker = maker_of(batch_norm_forward, norm),
                                       .inputs = {x_, sums_, gamma_, beta_, state(0), state(1)},
                                       .outputs = {x_.desc},
                                       .control = control_,
                                       .updated = {4, 5}});
    BatchNormProblem problem = norm;
    problem.pixels = x_.desc.shape[2] * x_.desc.shape[3];
    const Result affine = compute({.name = "affine",
                                   .maker = maker_of(batch_norm_affine, problem),
                                   .inputs = {sums_, gamma_, beta_, state(0), state(1)},
                                   .outputs = {f32({2 * c_})},
                                   .control = control_,
                                   .updated = {3, 4}});
    for (std::size_t i = 0; i < 2; ++i)
      expect_close(affine.inputs[3 + i], normalised.inputs[4 + i], 1e-6, "running statistics");
    const Tensor y = operand(normalised.outputs[0]), of_channels = operand(affine.outputs[0]);
    compare_forward(y, of_channels, limits);
    for (const bool bias : {false, true}) compare_backward_weights(y, of_channels, limits, bias);
    compare_forward_with_bias(y, of_channels, limits);
  }

 private:
  Result compute(const Case& test) {
    return run(backend_, half_ ? Layout::channels_last : Layout::row_major, half_ ? in_bf16(test) : test);
  }
  Tensor state(double value) const {
    return floats({c_}, std::vector<double>(static_cast<std::size_t>(c_), value));
  }

  void compare_forward(const Tensor& y, const Tensor& affine, const InputAffine& limits) {
    const std::int64_t k = weights_.desc.shape[0];
    for (const bool statistics : {false, true}) {
      Case plain{.name = "plain",
                 .maker = maker_of(conv2d_forward, Conv2dProblem{.statistics = statistics}),
                 .inputs = {y, weights_},
                 .outputs = {dy_.desc},
                 .control = control_};
      if (statistics) plain.outputs.push_back(f64({2, k}));
      Case fused = plain;
      fused.maker = maker_of(conv2d_forward, Conv2dProblem{.statistics = statistics, .input_affine = limits});
      fused.inputs = {x_, weights_, affine};
      const Result expected = compute(plain), found = compute(fused);
      // On a GPU both round the normalised values in the same way and add up the products in the
      // same order, so the bits are the same. The reference rounds the scale and the shift.
      expect_close(found.outputs[0], expected.outputs[0], half_ ? 0 : 1e-6, "y");
      if (statistics) expect_close(found.outputs[1], expected.outputs[1], half_ ? 1e-5 : 1e-6, "sums");
    }
  }
  void compare_forward_with_bias(const Tensor& y, const Tensor& affine, const InputAffine& limits) {
    const Tensor bias = random_.uniform({weights_.desc.shape[0]});
    Case plain{.name = "plain",
               .maker = maker_of(conv2d_forward, Conv2dProblem{.bias = true, .relu = true}),
               .inputs = {y, weights_, bias},
               .outputs = {dy_.desc}};
    Case fused = plain;
    fused.maker = maker_of(conv2d_forward, Conv2dProblem{.bias = true, .relu = true, .input_affine = limits});
    fused.inputs = {x_, weights_, bias, affine};
    expect_close(compute(fused).outputs[0], compute(plain).outputs[0], half_ ? 4e-3 : 1e-6, "y, bias");
  }
  void compare_backward_weights(const Tensor& y, const Tensor& affine, const InputAffine& limits, bool bias) {
    Case plain{.name = "plain",
               .maker = maker_of(conv2d_backward_weights, Conv2dProblem{.bias = bias}),
               .inputs = {y, dy_},
               .outputs = {weights_.desc},
               .single = {0}};
    if (bias) plain.outputs.push_back(f32({weights_.desc.shape[0]})), plain.single.push_back(1);
    Case fused = plain;
    fused.maker = maker_of(conv2d_backward_weights, Conv2dProblem{.bias = bias, .input_affine = limits});
    fused.inputs = {x_, dy_, affine};
    expect_close(compute(fused).outputs[0], compute(plain).outputs[0], half_ ? 1e-5 : 1e-6, "dweights");
  }

  Backend backend_;
  bool half_;
  Random random_;
  std::int64_t c_;
  Tensor x_, weights_, dy_, sums_, gamma_, beta_;
  StepControl control_;
};

TEST(Conv2dInputAffine, IsTheBatchNormAndTheConvolution) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<Backend> backends{Backend::reference};
  if (gpu_present() && conv2d_fuses_input_norm(Backend::cuda)) backends.push_back(Backend::cuda);
  std::uint64_t seed = 40;
  for (const Shapes& of : shapes())
    for (const Backend backend : backends) {
      // The reference takes seconds for large shapes.
      if (backend == Backend::reference && of.x.elements() * of.weights[0] > 10'000'000) continue;
      for (const std::int64_t missing : {0, 1}) {
        SCOPED_TRACE(of.x.to_string() + " by " + of.weights.to_string() + ", " + name_of(backend));
        InputAffineTest test(backend, of, ++seed, missing);
        test.compare({.relu = true}, {0, kInfinity});
        test.compare(
            {.activation = ActivationProblem{.kind = ActivationKind::clip, .min = -0.25F, .max = 0.5F}},
            {-0.25F, 0.5F});
        test.compare({.synchronised = missing > 0}, {-kInfinity, kInfinity});
      }
    }
}

TEST(Conv2dInputAffine, KeepsNaN) {
  for (const Backend backend : {Backend::reference, Backend::cuda}) {
    if (backend == Backend::cuda && !(gpu_present() && conv2d_fuses_input_norm(backend))) continue;
    Random random(3);
    Tensor x = random.uniform({1, 8, 4, 4});
    x.values[5] = std::numeric_limits<double>::quiet_NaN();
    Case test{.name = "nan",
              .maker = maker_of(conv2d_forward, Conv2dProblem{.input_affine = InputAffine{0, 6}}),
              .inputs = {x, random.uniform({8, 8, 1, 1}), random.uniform({16})},
              .outputs = {x.desc}};
    const bool half = backend == Backend::cuda;
    const Result result =
        run(backend, half ? Layout::channels_last : Layout::row_major, half ? in_bf16(test) : test);
    for (int k = 0; k < 8; ++k)
      for (int pixel = 0; pixel < 16; ++pixel)
        EXPECT_EQ(std::isnan(result.outputs[0].values[static_cast<std::size_t>(k * 16 + pixel)]), pixel == 5);
  }
}

TEST(Conv2dInputAffine, SuitsPointwiseConvolutions) {
  EXPECT_TRUE(suits_input_affine({}, {64, 8, 1, 1}));
  EXPECT_FALSE(suits_input_affine({.padding = {1, 1}}, {64, 8, 3, 3}));
  EXPECT_FALSE(suits_input_affine({.stride = {2, 2}}, {64, 8, 1, 1}));
  EXPECT_FALSE(suits_input_affine({.padding = {0, 1}}, {64, 8, 1, 1}));
  EXPECT_FALSE(suits_input_affine({.groups = 2}, {64, 8, 1, 1}));
  EXPECT_FALSE(suits_input_affine({}, {60, 8, 1, 1}));
  EXPECT_FALSE(suits_input_affine({}, {64, 12, 1, 1}));
}

// The cpu backend has no kernel for it, and CUDA none for f32. They must refuse it rather than
// compute something else.
TEST(Conv2dInputAffine, IsRefusedByOtherKernels) {
  const Conv2dProblem problem{.input_affine = InputAffine{}};
  KernelRequest request{{f32({2, 8, 4, 4}), f32({8, 8, 1, 1}), f32({16})}, {f32({2, 8, 4, 4})}};
  EXPECT_THROW(conv2d_forward(Backend::cpu, problem, request), std::invalid_argument);
  if (gpu_present()) EXPECT_THROW(conv2d_forward(Backend::cuda, problem, request), std::invalid_argument);
  KernelRequest weights{{f32({2, 8, 4, 4}), f32({2, 8, 4, 4}), f32({16})}, {f32({8, 8, 1, 1})}};
  EXPECT_THROW(conv2d_backward_weights(Backend::cpu, problem, weights), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
