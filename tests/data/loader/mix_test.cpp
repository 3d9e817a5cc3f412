// Tests how batches are mixed (mixup and cutmix): the random draws must depend on seed, epoch and
// step, and have the right distribution.
#include "data/loader/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/data/support.h"

namespace convoy::data {
namespace {

using kernels::MixParameters;

constexpr std::int64_t kHeight = 48, kWidth = 64;

MixParameters drawn(const MixSettings& settings, std::int64_t step, std::int64_t epoch = 0,
                    std::uint64_t seed = 1) {
  return draw_mix(settings, seed, epoch, step, kHeight, kWidth);
}

TEST(Mix, DependsOnSeedEpochAndStep) {
  for (const MixSettings& settings : {MixSettings{0.2f, 0}, MixSettings{0, 1}, MixSettings{0.2f, 1}})
    for (int step = 0; step < 50; ++step) EXPECT_EQ(drawn(settings, step), drawn(settings, step));
  const auto differ = [](auto other) {
    int different = 0;
    for (int step = 0; step < 100; ++step) different += drawn({1, 0}, step) != other(step);
    return different;
  };
  EXPECT_EQ(differ([](int step) { return drawn({1, 0}, step + 1); }), 100);
  EXPECT_EQ(differ([](int step) { return drawn({1, 0}, step, 1); }), 100);
  EXPECT_EQ(differ([](int step) { return drawn({1, 0}, step, 0, 2); }), 100);
  EXPECT_EQ(drawn({}, 3), MixParameters{}) << "no settings, no mixing";
}

// The weights of mixed samples must have the beta distribution. Checks variance and fourth moment.
// For alpha 1/2 (arcsine law), 1 (uniform) and 2 (a cubic), also checks the distribution function
// at the quarter points.
TEST(Mix, SharesAreBetaDistributed) {
  constexpr int kDraws = 40000;
  for (const double alpha : {0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 8.0, 200.0}) {
    const MixSettings settings{static_cast<float>(alpha), 0};
    double mean = 0, variance = 0, kurtosis = 0;
    std::vector<double> below(3);
    for (int step = 0; step < kDraws; ++step) {
      const MixParameters mix = drawn(settings, step);
      ASSERT_TRUE(mix.pixel_share >= 0 && mix.pixel_share <= 1) << alpha;
      ASSERT_EQ(mix.label_share, mix.pixel_share);
      ASSERT_EQ(mix.height * mix.width, 0);
      const double centred = static_cast<double>(mix.pixel_share) - 0.5;
      mean += centred / kDraws;
      variance += centred * centred / kDraws;
      kurtosis += std::pow(centred, 4) / kDraws;
      for (int i = 0; i < 3; ++i)
        below[i] += mix.pixel_share < 0.25f * static_cast<float>(i + 1) ? 1.0 / kDraws : 0;
    }
    const double expected = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(mean, 0, 4 * std::sqrt(expected / kDraws)) << alpha;
    EXPECT_NEAR(variance / expected, 1, 0.03) << alpha;
    EXPECT_NEAR(kurtosis / (expected * expected * 3 * (2 * alpha + 1) / (2 * alpha + 3)), 1, 0.08) << alpha;
    for (int i = 0; i < 3; ++i) {
      const double x = 0.25 * (i + 1);
      const double known = alpha == 0.5   ? 2 / M_PI * std::asin(std::sqrt(x))
                           : alpha == 1.0 ? x
                           : alpha == 2.0 ? x * x * (3 - 2 * x)
                                          : below[i];
      EXPECT_NEAR(below[i], known, 4 * 0.5 / std::sqrt(kDraws)) << alpha << " at " << x;
    }
  }
}

TEST(Mix, CutsRectanglesAndSharesLabelsByTheirArea) {
  double left = 0;
  int whole = 0, at_border = 0;
  constexpr int kDraws = 20000;
  for (int step = 0; step < kDraws; ++step) {
    const MixParameters mix = drawn({0, 1}, step);
    ASSERT_EQ(mix.pixel_share, 1);
    ASSERT_TRUE(mix.x >= 0 && mix.width >= 0 && mix.x + mix.width <= kWidth);
    ASSERT_TRUE(mix.y >= 0 && mix.height >= 0 && mix.y + mix.height <= kHeight);
    ASSERT_FLOAT_EQ(mix.label_share, 1 - static_cast<float>(mix.width * mix.height) / (kHeight * kWidth));
    left += (mix.x + mix.width / 2.0) / kWidth / kDraws;
    const bool cut_off =
        mix.x == 0 || mix.y == 0 || mix.x + mix.width == kWidth || mix.y + mix.height == kHeight;
    at_border += cut_off;
    // A rectangle inside the image must take the same fraction of the image's width as of the
    // image's height, except for rounding to pixels.
    if (!cut_off) {
      EXPECT_NEAR(mix.width / double(kWidth), mix.height / double(kHeight), 2.0 / kHeight);
      EXPECT_EQ(mix.width % 2 + mix.height % 2, 0);
      ++whole;
    }
  }
  EXPECT_NEAR(left, 0.5, 0.01);
  EXPECT_GT(whole, kDraws / 10);
  EXPECT_GT(at_border, kDraws / 4);
}

TEST(Mix, ChoosesOneOfBothWithEvenOdds) {
  int cut = 0;
  constexpr int kDraws = 10000;
  for (int step = 0; step < kDraws; ++step) {
    const MixParameters mix = drawn({1, 1}, step);
    EXPECT_TRUE(mix.pixel_share == 1 || (mix.height == 0 && mix.label_share == mix.pixel_share)) << step;
    cut += mix.pixel_share == 1;
  }
  EXPECT_NEAR(cut, kDraws / 2, 200);
}

TEST(Mix, SettingsAreChecked) {
  EXPECT_NO_THROW((MixSettings{}.check()));
  EXPECT_NO_THROW((MixSettings{0.2f, 1000}.check()));
  testing::expect_error([] { MixSettings{-0.2f, 0}.check(); }, {"mixup", "-0.2", "0 (none) to 1000"});
  testing::expect_error([] { MixSettings{0, 1e6f}.check(); }, {"cutmix", "1000000"});
  testing::expect_error([] { MixSettings{0, NAN}.check(); }, {"cutmix", "nan"});
}

}  // namespace
}  // namespace convoy::data
