// Tests the mixing of samples with their partners.
#include "kernels/mix/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/kernels/harness.h"
#include "tests/kernels/mix_support.h"

namespace convoy::kernels::testing {
namespace {

Case mixed(Tensor x, const MixParameters& mix, int valid) {
  const Shape shape = x.desc.shape;
  Case test{.name = "mix_forward " + shape.to_string(),
            .maker = [](Backend b, KernelRequest& r) { return mix_forward(b, {}, r); },
            .inputs = {std::move(x), mix_operand(mix)},
            .outputs = {f32(shape)},
            .control = all_valid(shape[0])};
  test.control.valid = valid;
  return test;
}

constexpr MixParameters kMixup{0.3f, 0.3f}, kCutmix{1, 0.8f, 1, 2, 3, 2};

TEST(Mix, MatchesTheReference) {
  Random random(1);
  for (const Shape& shape : {Shape{4, 3, 5, 7}, Shape{3, 8, 6, 5}, Shape{2, 24, 4, 4}, Shape{5, 4, 37, 41}})
    for (const MixParameters& mix : {MixParameters{}, kMixup, kCutmix, MixParameters{0.6f, 0.5f, 0, 0, 4, 4}})
      for (const int missing : {0, 1}) {
        const auto valid = static_cast<int>(shape[0]) - missing;
        expect_matches_reference(mixed(random.uniform(shape), mix, valid));
      }
}

TEST(Mix, IsTheFormula) {
  Random random(2);
  const Tensor x = random.uniform({4, 2, 5, 6});
  for (const MixParameters& mix : {kMixup, kCutmix}) {
    const Tensor y = run_reference(mixed(x, mix, 3)).outputs[0];
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 60; ++i) {
        const int row = i / 6 % 5, column = i % 6, partner[] = {1, 0, 2};
        const bool cut =
            row >= mix.y && row < mix.y + mix.height && column >= mix.x && column < mix.x + mix.width;
        const double share = cut ? 0 : double(mix.pixel_share);
        const double expected =
            n == 3 ? 0 : share * x.values[n * 60 + i] + (1 - share) * x.values[partner[n] * 60 + i];
        ASSERT_NEAR(y.values[n * 60 + i], expected, 1e-7) << n << ", " << i;
      }
  }
}

TEST(Mix, ReadsNoSampleThatIsNotThere) {
  Random random(3);
  Tensor x = random.uniform({3, 1, 2, 2});
  for (int i = 4; i < 12; ++i) x.values[i] = std::numeric_limits<double>::quiet_NaN();
  for (const Backend b : {Backend::reference, Backend::cpu}) {
    const std::vector<double> y = run(b, Layout::row_major, mixed(x, kMixup, 1)).outputs[0].values;
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], x.values[i], 1e-6) << "a single sample is its own partner";
    for (int i = 4; i < 12; ++i) EXPECT_EQ(y[i], 0);
    const Result nothing = run(b, Layout::row_major, mixed(x, kMixup, 0));
    EXPECT_EQ(nothing.outputs[0].values, std::vector<double>(12, 0));
  }
}

TEST(Mix, OfNothingKeepsTheBits) {
  Random random(4);
  const Tensor x = random.uniform({3, 3, 4, 4});
  for (const Backend b : {Backend::reference, Backend::cpu})
    EXPECT_EQ(run(b, Layout::row_major, mixed(x, {}, 3)).outputs[0].values, x.values);
}

TEST(Mix, RefusesWhatDoesNotFit) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    const auto expect = [&](bool refused, auto change) {
      KernelRequest request{{f32({2, 3, 4, 4}), mix_operand({}).desc}, {f32({2, 3, 4, 4})}};
      request.inputs[0].layout = Layout::row_major;
      change(request);
      bool thrown = false;
      try {
        mix_forward(backend, {}, request);
      } catch (const std::invalid_argument&) {
        thrown = true;
      }
      EXPECT_EQ(thrown, refused) << name_of(backend);
    };
    expect(false, [](KernelRequest&) {});
    expect(true, [](KernelRequest& r) { r.inputs.pop_back(); });
    expect(true, [](KernelRequest& r) { r.inputs[0].shape = r.outputs[0].shape = {2, 3}; });
    expect(true, [](KernelRequest& r) { r.inputs[1].shape = {kMixWords + 1}; });
    expect(true, [](KernelRequest& r) { r.inputs[1].dtype = DType::f32; });
    expect(true, [](KernelRequest& r) { r.outputs[0].shape = {2, 3, 4, 5}; });
    expect(true, [](KernelRequest& r) { r.outputs[0].layout = Layout::blocked8; });
  }
}

}  // namespace
}  // namespace convoy::kernels::testing
