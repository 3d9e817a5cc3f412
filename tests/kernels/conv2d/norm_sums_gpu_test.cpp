// Tests convolutions that also compute sums for a batch norm while they write their result. For
// every plan (a kernel with its tile sizes):
// - y of forward must have the bits that the plan gives without sums.
// - backward_data must give the plan's dx plus dy2, the gradient from a second operation, with
//   zeros where the mask of the ReLU is 0.
// - The sums must be those of the values as they were written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "kernels/conv2d/bench/measure.h"
#include "tests/brief.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

using conv::Engine;
using conv::Task;
using Half = std::uint16_t;  // the bits of a bf16

float value_of(Half bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, 4);
  return value;
}
float value_of(float value) { return value; }

template <typename T>
T rounded(float value) {
  if constexpr (sizeof(T) == 4) return value;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return static_cast<T>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Image {
  int n, c, h, w, filters, size;  // filters of size x size, with padding size / 2
  int stride = 1;                 // used in forward only
  int groups = 1;
  int above = 0;  // additional rows of padding above and below

  int p() const { return (h + 2 * above - 1) / stride + 1; }
  int q() const { return (w - 1) / stride + 1; }
};

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count)
      : count_(count), memory_(allocate(Backend::cuda, count * sizeof(T) + 1)) {
    const std::vector<std::byte> nan(count * sizeof(T), std::byte{0xff});
    copy_in(Backend::cuda, memory_.get(), nan.data(), nan.size());
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    copy_in(Backend::cuda, memory_.get(), reinterpret_cast<const std::byte*>(values.data()),
            count_ * sizeof(T));
  }
  T* get() const { return reinterpret_cast<T*>(memory_.get()); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    copy_out(Backend::cuda, reinterpret_cast<std::byte*>(values.data()), memory_.get(), count_ * sizeof(T));
    return values;
  }

 private:
  std::size_t count_;
  std::shared_ptr<std::byte> memory_;
};

class NormSums : public ::testing::Test {
 protected:
  std::set<std::pair<Engine, int>> tiles_;  // engines and tiles that were checked

  std::ptrdiff_t tiles_of(Engine engine) const {
    return std::ranges::count_if(tiles_, [&](const auto& tile) { return tile.first == engine; });
  }

  // Checks the sums that forward computes. If `ratio` is not 0, a constant is added to all values
  // of y: about `ratio` times their standard deviation.
  template <typename T>
  void check_statistics(Engine engine, const Image& image, int valid, double ratio = 0) {
    Task plain = task_of<T>(image, conv::Direction::forward), task = plain;
    task.statistics = true;
    if (!conv::supports(engine, task)) return;
    const std::size_t image_pixels = std::size_t(image.p() * image.q()),
                      pixels = std::size_t(image.n) * image_pixels, k = std::size_t(image.filters);
    std::vector<T> x_values = values<T>(pixels_of(image) * std::size_t(image.c)),
                   weight_values = values<T>(weights_of(image));
    if (ratio > 0) add_constant(image, ratio, x_values, weight_values);
    const OnDevice<T> x(x_values), weights(weight_values);
    const OnDevice<StepControl> control(control_of(valid));
    for (const conv::Plan& plan : conv::candidates(engine, task)) {
      if (!plan.fuses_extra) continue;
      tiles_.insert({engine, plan.product.tile});
      SCOPED_TRACE(task.to_string() + ", " + plan.to_string());
      const OnDevice<T> before(pixels * k), y(pixels * k);
      const OnDevice<double> sums(2 * k);
      const OnDevice<std::uint8_t> workspace(plan.workspace_bytes);
      conv::Buffers buffers{.images = x.get(), .weights = weights.get(), .out = before.get()};
      buffers.control = control.get();
      buffers.workspace = workspace.get();
      conv::bind(plain, plan, buffers)({});
      buffers.out = y.get();
      buffers.sums = sums.get();
      const Launch launch = conv::bind(task, plan, buffers);
      launch({});

      const std::vector<T> written = y.read(), without = before.read();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < written.size(); ++i)
        // A NaN counts as wrong, too.
        wrong += !(value_of(written[i]) == value_of(without[i]));
      EXPECT_EQ(wrong, 0u) << "elements of y";
      std::vector<double> sum(k), squares(k), magnitude(k);
      for (std::size_t i = 0; i < std::size_t(valid) * image_pixels * k; ++i) {
        const double value = value_of(written[i]);
        sum[i % k] += value, squares[i % k] += value * value, magnitude[i % k] += std::abs(value);
      }
      const std::vector<double> found = sums.read();
      for (std::size_t i = 0; i < k; ++i) {
        ASSERT_NEAR(found[i], sum[i], 5e-6 * magnitude[i]) << "channel " << i;
        ASSERT_NEAR(found[k + i], squares[i], 5e-6 * squares[i]) << "channel " << i;
      }
      const std::int64_t rows = std::int64_t(valid) * std::int64_t(image_pixels), channels = image.filters;
      std::vector<double> valid_y(std::size_t(rows * channels));
      for (std::size_t i = 0; i < valid_y.size(); ++i) valid_y[i] = value_of(written[i]);
      expect_variance(doubles({2, channels}, found), floats({rows, channels}, valid_y), rows,
                      sizeof(T) == 2 ? DType::bf16 : DType::f32, "ratio " + std::to_string(ratio));
      expect_the_same_again(launch, sums);
      EXPECT_EQ(y.read(), written);
    }
  }

  template <typename T>
  void check_gradient(const Image& image, int valid) {
    const std::size_t pixels = pixels_of(image), c = std::size_t(image.c),
                      pack = 16 / sizeof(T);  // the elements that one byte of the mask covers
    const OnDevice<T> dy(values<T>(std::size_t(image.n * image.p() * image.q() * image.filters))),
        weights(values<T>(weights_of(image)));
    const std::vector<T> x = values<T>(pixels * c), dy2 = values<T>(pixels * c);
    const std::vector<std::uint8_t> mask = bytes(pixels * c / pack);
    std::vector<double> sums(2 * c);
    const double count = double(valid) * image.h * image.w;
    for (std::size_t i = 0; i < c; ++i) sums[i] = 0.3 * count, sums[c + i] = 1.1 * count;
    const OnDevice<T> x_there(x), dy2_there(dy2);
    const OnDevice<std::uint8_t> mask_there(mask);
    const OnDevice<double> sums_there(sums);
    const OnDevice<StepControl> control(control_of(valid));

    Task plain = task_of<T>(image, conv::Direction::backward_data), task = plain;
    task.input_norm = true;
    conv::Bench bench(task);
    for (const conv::Plan& plan : conv::candidates(Engine::im2col, task)) {
      if (!plan.fuses_extra) continue;
      tiles_.insert({Engine::im2col, plan.product.tile});
      SCOPED_TRACE(task.to_string() + ", " + plan.to_string());
      const OnDevice<T> before(pixels * c), g(pixels * c);
      const OnDevice<double> dsums(2 * c);
      const OnDevice<float> dgamma(c), dbeta(c);
      const OnDevice<std::uint8_t> workspace(plan.workspace_bytes);
      conv::Buffers buffers{.images = dy.get(), .weights = weights.get(), .out = before.get()};
      buffers.control = control.get();
      buffers.workspace = workspace.get();
      conv::bind(plain, plan, buffers)({});
      buffers.out = g.get();
      buffers.norm = {.x = x_there.get(),
                      .dy2 = dy2_there.get(),
                      .mask = mask_there.get(),
                      .sums = sums_there.get(),
                      .dsums = dsums.get(),
                      .dgamma = dgamma.get(),
                      .dbeta = dbeta.get(),
                      .epsilon = 1e-5f};
      const Launch launch = conv::bind(task, plan, buffers);
      launch({});

      const std::vector<T> unmasked = before.read(), found = g.read();
      std::vector<double> sum(c), sum_x(c), magnitude(c), magnitude_x(c);
      std::size_t wrong = 0;
      const std::size_t valid_elements = std::size_t(valid) * std::size_t(image.h * image.w) * c;
      for (std::size_t i = 0; i < found.size(); ++i) {
        T expected = rounded<T>(value_of(unmasked[i]) + value_of(dy2[i]));
        if (i >= valid_elements || (mask[i / pack] >> (i % pack) & 1) == 0) expected = 0;
        wrong += value_of(found[i]) != value_of(expected);
        const double value = value_of(found[i]), of_x = value * value_of(x[i]);
        sum[i % c] += value, magnitude[i % c] += std::abs(value);
        sum_x[i % c] += of_x, magnitude_x[i % c] += std::abs(of_x);
      }
      EXPECT_EQ(wrong, 0u) << "elements of g";
      const std::vector<double> of_g = dsums.read();
      const std::vector<float> gamma = dgamma.read(), beta = dbeta.read();
      const double invstd = 1 / std::sqrt(1.1 - 0.09 + 1e-5);
      for (std::size_t i = 0; i < c; ++i) {
        const double xhat = (sum_x[i] - 0.3 * sum[i]) * invstd,
                     bound = 1e-5 * (magnitude[i] + magnitude_x[i]);
        ASSERT_NEAR(of_g[i], sum[i], bound) << "channel " << i;
        ASSERT_NEAR(of_g[c + i], xhat, bound) << "channel " << i;
        ASSERT_EQ(beta[i], float(of_g[i]));
        ASSERT_EQ(gamma[i], float(of_g[c + i]));
      }
      expect_the_same_again(launch, dsums);
      EXPECT_EQ(g.read(), found);
      EXPECT_TRUE(bench.check(plan, 1).correct) << "as bench conv checks it";
    }
  }

 private:
  // Launches many times and compares bits, because one launch may not show a race.
  static void expect_the_same_again(const Launch& launch, const OnDevice<double>& sums) {
    const std::vector<double> found = sums.read();
    for (int time = 0; time < (convoy::test::brief() ? 1 : 50); ++time) {
      launch({});
      ASSERT_EQ(sums.read(), found);
    }
  }
  static std::size_t pixels_of(const Image& image) {
    return std::size_t(image.n) * std::size_t(image.h * image.w);
  }
  static std::size_t weights_of(const Image& image) {
    return std::size_t(image.filters) * std::size_t(image.size * image.size) *
           std::size_t(image.c / image.groups);
  }
  // Sets the first input channel of each group to 1. Of its weights, only those in the middle of
  // the filters are not 0. So this channel adds the same constant to every value of y.
  template <typename T>
  static void add_constant(const Image& image, double ratio, std::vector<T>& x, std::vector<T>& weights) {
    const std::size_t own = std::size_t(image.c / image.groups), taps = std::size_t(image.size * image.size);
    // About the standard deviation of y, if x and the weights are uniform in [-1, 1.5].
    const double deviation = 0.55 * std::sqrt(double(own * taps));
    for (std::size_t i = 0; i < x.size(); i += own) x[i] = rounded<T>(1);
    for (std::size_t i = 0; i < weights.size(); i += own)
      weights[i] = rounded<T>(float(i / own % taps == taps / 2 ? ratio * deviation : 0));
  }
  static std::vector<StepControl> control_of(int valid) {
    StepControl control;
    control.valid = control.global_valid = valid;
    return {control};
  }
  template <typename T>
  static Task task_of(const Image& image, conv::Direction direction) {
    Task task;
    task.direction = direction;
    task.math = sizeof(T) == 2 ? gemm::Math::bf16 : gemm::Math::tf32;
    const int padding = image.size / 2;
    task.geometry = {image.n,
                     image.c,
                     image.h,
                     image.w,
                     image.filters,
                     image.p(),
                     image.q(),
                     image.size,
                     image.size,
                     {image.stride, image.stride},
                     {padding + image.above, padding},
                     {1, 1},
                     image.groups};
    return task;
  }
  template <typename T>
  std::vector<T> values(std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = rounded<T>(uniform_(random_));
    return values;
  }
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> values(count);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random_());
    return values;
  }

  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1, 1.5f};
};

// A layer with its image size, and the number of samples that are not padding.
struct Sample {
  Image image;
  int valid;
};

std::vector<Sample> samples() {
  // Some of these shapes leave tiles partly empty, others give more tiles than thread blocks.
  std::vector<Sample> all = {{{2, 72, 9, 7, 40, 1}, 1},           {{90, 160, 14, 14, 32, 1}, 89},
                             {{180, 32, 14, 14, 160, 1}, 179},    {{5, 96, 9, 7, 96, 3, 1, 24}, 4},
                             {{7, 64, 9, 10, 64, 3}, 5},          {{3, 64, 5, 70, 72, 3, 1, 1, 2}, 2},
                             {{3, 128, 6, 9, 64, 3, 1, 1, 1}, 3}, {{400, 8, 16, 16, 8, 3}, 399},
                             {{150, 32, 16, 15, 64, 5}, 149},     {{7, 64, 9, 10, 64, 5}, 5}};
  if (convoy::test::brief()) return all;
  const Sample rest[] = {
      {{3, 64, 14, 14, 128, 3}, 3},
      {{3, 64, 14, 14, 128, 3}, 2},
      {{2, 256, 9, 7, 64, 1}, 2},
      {{70, 64, 8, 8, 64, 3}, 69},
      {{40, 256, 14, 14, 64, 1}, 40},
      {{3, 320, 6, 6, 32, 3}, 3},
      {{9, 520, 7, 7, 512, 3}, 9},  // more channels than in other layers
      {{20, 128, 14, 14, 128, 3, 1, 32}, 19},
      {{9, 160, 9, 11, 160, 3}, 9},
      {{9, 344, 6, 7, 176, 1}, 8},
      {{90, 160, 14, 14, 64, 1}, 89},
      {{64, 64, 28, 28, 64, 3}, 64},
      {{64, 128, 28, 28, 64, 1}, 63},
      {{64, 160, 28, 28, 160, 3}, 64},
  };
  all.insert(all.end(), std::begin(rest), std::end(rest));
  return all;
}

TEST_F(NormSums, OfForward) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  if (!conv2d_fuses_input_norm(Backend::cuda)) GTEST_SKIP() << "no Hopper: there are no such plans";
  // The first layer of a network, and layers that halve height and width.
  const Sample halving[] = {
      {{9, 3, 46, 46, 64, 7, 2}, 8}, {{9, 64, 15, 14, 128, 3, 2}, 9}, {{9, 128, 15, 14, 64, 1, 2}, 8}};
  // The kernels treat neighbouring pixels of these layers as one (joined_pixels.h).
  const Sample joined[] = {
      {{5, 58, 6, 6, 58, 1}, 3}, {{90, 24, 28, 28, 58, 1}, 89}, {{40, 58, 14, 14, 116, 1}, 40}};
  std::vector<Sample> all = samples();
  all.insert(all.end(), std::begin(halving), std::end(halving));
  all.insert(all.end(), std::begin(joined), std::end(joined));
  for (const Engine engine : {Engine::im2col, Engine::folded})
    for (const auto& [image, valid] : all) check_statistics<Half>(engine, image, valid);
  EXPECT_EQ(tiles_of(Engine::im2col), 14) << "tile shapes in bf16";
  EXPECT_GE(tiles_of(Engine::folded), 7) << "tile shapes in bf16";
  tiles_.clear();
  for (const Engine engine : {Engine::im2col, Engine::folded})
    for (const auto& [image, valid] : all) check_statistics<float>(engine, image, valid);
  EXPECT_EQ(tiles_of(Engine::im2col), 10) << "tile shapes in tf32";
  EXPECT_EQ(tiles_of(Engine::folded), 8) << "tile shapes in tf32";
}

TEST_F(NormSums, KeepTheVarianceFarFromZero) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  if (!conv2d_fuses_input_norm(Backend::cuda)) GTEST_SKIP() << "no Hopper: there are no such plans";
  // Layers with few and with many samples, with groups, and with pixels that kernels treat as one
  // (joined) or turn into channels (folded). Some tiles have gaps between the rows of an image.
  const Sample all[] = {{{90, 160, 14, 14, 32, 1}, 89}, {{7, 64, 9, 10, 64, 3}, 5},
                        {{64, 64, 28, 28, 64, 3}, 63},  {{5, 96, 9, 7, 96, 3, 1, 24}, 4},
                        {{40, 58, 14, 14, 116, 1}, 40}, {{9, 3, 46, 46, 64, 7, 2}, 8},
                        {{7, 64, 9, 10, 64, 5}, 5},     {{40, 64, 7, 7, 64, 5}, 39}};
  for (const Engine engine : {Engine::im2col, Engine::folded})
    for (const auto& [image, valid] : all)
      for (const double ratio : {10, 100, 1000}) {
        check_statistics<float>(engine, image, valid, ratio);
        if (ratio < 1000) check_statistics<Half>(engine, image, valid, ratio);
      }
}

TEST_F(NormSums, OfMaskedGradients) {
  if (!gemm::device_present()) GTEST_SKIP() << "no CUDA device";
  if (!conv2d_fuses_input_norm(Backend::cuda)) GTEST_SKIP() << "no Hopper: there are no such plans";
  for (const auto& [image, valid] : samples()) check_gradient<Half>(image, valid);
  EXPECT_EQ(tiles_of(Engine::im2col), 10) << "tile shapes in bf16";
  tiles_.clear();
  for (const auto& [image, valid] : samples()) check_gradient<float>(image, valid);
  EXPECT_EQ(tiles_of(Engine::im2col), 7) << "tile shapes in tf32";
}

}  // namespace
}  // namespace convoy::kernels::testing
