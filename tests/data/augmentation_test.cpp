#include "data/loader/augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

const std::vector<float> kMean{0.4f, 0.5f, 0.6f}, kStd{0.2f, 0.25f, 0.3f};

// The definition of cutting, mirroring, blanking and normalising, a pixel at a time.
float expected_value(const Bytes& image, ImageShape stored, ImageShape output,
                     const AugmentationParameters& p, std::int64_t y, std::int64_t x, std::int64_t c) {
  if (x >= p.cutout_x && x < p.cutout_x + p.cutout_size && y >= p.cutout_y && y < p.cutout_y + p.cutout_size)
    return 0;
  const std::int64_t column = p.window.x + (p.flip != 0 ? output.width - 1 - x : x), row = p.window.y + y;
  if (column < 0 || column >= stored.width || row < 0 || row >= stored.height) return 0;
  const auto channel = static_cast<std::size_t>(c);
  const double value = image[static_cast<std::size_t>((row * stored.width + column) * stored.channels + c)];
  return static_cast<float>((value / 255 - kMean[channel]) / kStd[channel]);
}

std::int64_t at(ImageLayout layout, ImageShape shape, std::int64_t y, std::int64_t x, std::int64_t c) {
  return layout == ImageLayout::row_major ? (c * shape.height + y) * shape.width + x
                                          : (y * shape.width + x) * shape.channels + c;
}

TEST(Augmenter, CutsMirrorsBlanksAndNormalises) {
  for (const std::int64_t channels : {1, 2, 3}) {
    const ImageShape stored{11, 9, channels};
    const Bytes image = random_bytes(static_cast<std::size_t>(stored.bytes()), 1);
    Augmentation augmentation;
    augmentation.height = 8;
    augmentation.width = 10;
    augmentation.random_crop = augmentation.flip = augmentation.cutout = true;
    augmentation.cutout_size = 3;
    const ImageShape output = augmentation.output_shape(stored);
    const std::vector<float> mean(kMean.begin(), kMean.begin() + channels),
        std(kStd.begin(), kStd.begin() + channels);
    for (const ImageLayout layout : {ImageLayout::row_major, ImageLayout::channels_last}) {
      Augmenter augmenter(augmentation, stored, mean, std, layout);
      for (std::int64_t sample = 0; sample < 200; ++sample) {
        const auto parameters = draw(augmentation, stored, 3, 1, sample);
        std::vector<float> result(static_cast<std::size_t>(output.bytes()), 99.0f);
        augmenter.apply(image.data(), parameters, result.data());
        for (std::int64_t y = 0; y < output.height; ++y) {
          for (std::int64_t x = 0; x < output.width; ++x) {
            for (std::int64_t c = 0; c < channels; ++c) {
              ASSERT_NEAR(result[static_cast<std::size_t>(at(layout, output, y, x, c))],
                          expected_value(image, stored, output, parameters, y, x, c), 1e-5)
                  << "sample " << sample << " at " << x << "," << y;
            }
          }
        }
      }
    }
  }
}

TEST(Augmenter, ResizesMirrorsAndNormalises) {
  const ImageShape stored{20, 30, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(stored.bytes()), 1);
  Augmentation augmentation;
  augmentation.height = augmentation.width = 12;
  augmentation.random_resized_crop = augmentation.flip = true;
  const ImageShape output = augmentation.output_shape(stored);
  Resampler resampler;
  for (const ImageLayout layout : {ImageLayout::row_major, ImageLayout::channels_last}) {
    Augmenter augmenter(augmentation, stored, kMean, kStd, layout);
    for (std::int64_t sample = 0; sample < 100; ++sample) {
      const auto parameters = draw(augmentation, stored, 3, 1, sample);
      std::vector<float> result(static_cast<std::size_t>(output.bytes()));
      augmenter.apply(image.data(), parameters, result.data());
      const float* plain = resampler.resample(image.data(), stored, parameters.window, 12, 12);
      for (std::int64_t y = 0; y < 12; ++y) {
        for (std::int64_t x = 0; x < 12; ++x) {
          for (std::int64_t c = 0; c < 3; ++c) {
            const std::int64_t column = parameters.flip != 0 ? 11 - x : x;
            const auto channel = static_cast<std::size_t>(c);
            ASSERT_NEAR(result[static_cast<std::size_t>(at(layout, output, y, x, c))],
                        (plain[(y * 12 + column) * 3 + c] / 255 - kMean[channel]) / kStd[channel], 1e-4);
          }
        }
      }
    }
  }
}

TEST(Draw, DependsOnSeedEpochAndSampleAlone) {
  const Augmentation augmentation = parse_augmentation("crop:4,flip,cutout:8");
  const ImageShape stored{32, 32, 3};
  const auto first = draw(augmentation, stored, 1, 2, 3);
  EXPECT_EQ(draw(augmentation, stored, 1, 2, 3), first);
  int same_seed = 0, same_epoch = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    same_seed += draw(augmentation, stored, 1, 2, i) == draw(augmentation, stored, 2, 2, i);
    same_epoch += draw(augmentation, stored, 1, 2, i) == draw(augmentation, stored, 1, 3, i);
  }
  EXPECT_LT(same_seed, 3);
  EXPECT_LT(same_epoch, 3);
}

// Every offset, both directions and every place of the cutout occur, about equally often.
TEST(Draw, CoversItsRanges) {
  const Augmentation augmentation = parse_augmentation("crop:4,flip,cutout:8");
  const ImageShape stored{32, 32, 3};
  std::map<std::int32_t, int> x, y, flip, cut_x;
  const int samples = 30000;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto p = draw(augmentation, stored, 5, 0, i);
    EXPECT_EQ(p.window.width, 32);
    EXPECT_EQ(p.window.height, 32);
    ++x[p.window.x];
    ++y[p.window.y];
    ++flip[p.flip];
    ++cut_x[p.cutout_x];
  }
  const auto uniform = [&](const std::map<std::int32_t, int>& counts, std::int32_t low, std::size_t values) {
    EXPECT_EQ(counts.size(), values);
    EXPECT_EQ(counts.begin()->first, low);
    const double expected = samples / static_cast<double>(values);
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << value;
  };
  uniform(x, -4, 9);
  uniform(y, -4, 9);
  uniform(flip, 0, 2);
  uniform(cut_x, -4, 32);
}

TEST(Draw, ResizedCropsStayInsideAndKeepTheirRanges) {
  Augmentation augmentation = parse_augmentation("resized-crop");
  augmentation.height = augmentation.width = 224;
  const ImageShape stored{256, 340, 3};
  double smallest = 1, largest = 0, mean = 0;
  for (std::int64_t i = 0; i < 5000; ++i) {
    const Window w = draw(augmentation, stored, 5, 0, i).window;
    ASSERT_GE(w.x, 0);
    ASSERT_GE(w.y, 0);
    ASSERT_LE(w.x + w.width, stored.width);
    ASSERT_LE(w.y + w.height, stored.height);
    const double aspect = static_cast<double>(w.width) / w.height;
    EXPECT_GT(aspect, 0.73);
    EXPECT_LT(aspect, 1.37);
    const double area = static_cast<double>(w.width) * w.height / (256.0 * 340);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    mean += area / 5000;
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.9);
  // Uniform over 0.08 to 1 would have 0.54; the largest areas fit only in few aspects.
  EXPECT_NEAR(mean, 0.44, 0.04);
}

TEST(Draw, AnImpossibleAspectFallsBackToTheCentre) {
  Augmentation augmentation = parse_augmentation("resized-crop");
  augmentation.height = augmentation.width = 4;
  augmentation.min_area = 0.9f;  // no nearly square window of a long strip has that area
  const Window window = draw(augmentation, {10, 1000, 3}, 1, 0, 0).window;
  EXPECT_EQ(window, (Window{495, 0, 10, 10}));
}

TEST(Draw, EvaluationTakesTheCentre) {
  Augmentation augmentation;
  augmentation.height = augmentation.width = 224;
  augmentation.centre_fraction = 0.875f;
  EXPECT_EQ(draw(augmentation, {256, 256, 3}, 1, 0, 0).window, (Window{16, 16, 224, 224}));  // no resizing
  EXPECT_EQ(draw(augmentation, {256, 512, 3}, 1, 0, 0).window, (Window{144, 16, 224, 224}));
  EXPECT_EQ(draw(augmentation, {512, 512, 3}, 1, 0, 0).window, (Window{32, 32, 448, 448}));
  EXPECT_EQ(draw(Augmentation{}, {33, 40, 1}, 1, 0, 0), (AugmentationParameters{{0, 0, 40, 33}, 0, 0, 0, 0}));
}

TEST(Augmentation, ReadsItsWords) {
  const Augmentation a = parse_augmentation("crop:2,flip,cutout:16");
  EXPECT_TRUE(a.random_crop && a.flip && a.cutout && !a.random_resized_crop);
  EXPECT_EQ(a.padding, 2);
  EXPECT_EQ(a.cutout_size, 16);
  EXPECT_TRUE(parse_augmentation("resized-crop").random_resized_crop);
  EXPECT_FALSE(parse_augmentation("none").flip);
  expect_error([] { parse_augmentation("crop,flop"); }, {"'flop'", "flip"});
  expect_error([] { parse_augmentation("crop:x"); }, {"crop:x", "PIXELS"});
  expect_error([] { parse_augmentation("crop:-1"); }, {"crop:-1"});
  expect_error([] { parse_augmentation("flip:2"); }, {"flip:2"});
}

TEST(Augmentation, RefusesWhatCannotBe) {
  Augmentation both = parse_augmentation("crop,resized-crop");
  expect_error([&] { both.output_shape({32, 32, 3}); }, {"exclude"});
  Augmentation large = parse_augmentation("crop:4");
  large.height = large.width = 48;
  expect_error([&] { large.output_shape({32, 32, 3}); }, {"48x48", "32x32", "padding of 4"});
  Augmentation blank = parse_augmentation("cutout:32");
  blank.output_shape({32, 32, 3});
  expect_error([&] { blank.output_shape({31, 40, 3}); }, {"32x32", "40x31"});
  blank.height = blank.width = 31;
  expect_error([&] { blank.output_shape({32, 32, 3}); }, {"32x32", "31x31"});
  Augmentation fraction;
  fraction.centre_fraction = 0;
  EXPECT_THROW(fraction.output_shape({32, 32, 3}), std::runtime_error);
  EXPECT_THROW(Augmenter({}, {4, 4, 3}, {}, {}, ImageLayout::row_major), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::data
