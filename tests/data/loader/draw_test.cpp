#include <algorithm>
#include <cmath>
#include <map>

#include "data/loader/augmentation.h"
#include "tests/data/image/expected_resampling.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

TEST(Draw, DependsOnSeedEpochAndSampleAlone) {
  const Augmentation augmentation = parse_augmentation("crop:4,flip,cutout:8,erase:0.5");
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

// If an augmentation is switched on, the random draws of the others must not change.
TEST(Draw, ChangesDoNotDisturbEachOther) {
  const ImageShape stored{32, 32, 3};
  for (std::int64_t i = 0; i < 50; ++i) {
    const auto few = draw(parse_augmentation("crop:4"), stored, 1, 0, i);
    const auto many = draw(parse_augmentation("crop:4,flip,cutout:8,erase:1"), stored, 1, 0, i);
    EXPECT_EQ(few.window, many.window);
    EXPECT_EQ(draw(parse_augmentation("cutout:8"), stored, 1, 0, i).erased[0], many.erased[0]);
    EXPECT_EQ(draw(parse_augmentation("erase:1"), stored, 1, 0, i).erased[1], many.erased[1]);
  }
}

// Checks by a chi-square test that all values are equally probable. A correct program fails this
// check about once in 10^5 cases.
void expect_uniform(const std::map<std::int32_t, int>& counts, std::int32_t low, int values, int samples) {
  ASSERT_EQ(counts.size(), static_cast<std::size_t>(values));
  EXPECT_EQ(counts.begin()->first, low);
  const double expected = static_cast<double>(samples) / values, freedom = values - 1;
  double chi_square = 0;
  for (const auto& [value, count] : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, freedom + 4.3 * std::sqrt(2 * freedom) + 12);
  EXPECT_GT(chi_square, freedom - 4.3 * std::sqrt(2 * freedom));
}

// Every offset of the crop, both directions of the flip and every place of the cutout must be about
// equally frequent.
TEST(Draw, CoversItsRanges) {
  const Augmentation augmentation = parse_augmentation("crop:4,flip,cutout:8");
  std::map<std::int32_t, int> x, y, flip, cut_x, cut_y;
  const int samples = 30000;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto p = draw(augmentation, {32, 32, 3}, 5, 0, i);
    EXPECT_EQ(p.window.width, 32);
    EXPECT_EQ(p.window.height, 32);
    ++x[p.window.x];
    ++y[p.window.y];
    ++flip[p.flip];
    ++cut_x[p.erased[0].x];
    ++cut_y[p.erased[0].y];
  }
  expect_uniform(x, -4, 9, samples);
  expect_uniform(y, -4, 9, samples);
  expect_uniform(flip, 0, 2, samples);
  expect_uniform(cut_x, -4, 32, samples);
  expect_uniform(cut_y, -4, 32, samples);
}

// An encoded image that is smaller than the crop must get a random place in the crop.
TEST(Draw, ASmallImageLiesAnywhereInItsCrop) {
  Augmentation augmentation = parse_augmentation("crop:0");
  augmentation.height = augmentation.width = 32;
  std::map<std::int32_t, int> x;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const auto p = draw(augmentation, {40, 28, 3}, 5, 0, i);
    ++x[p.window.x];
    EXPECT_GE(p.window.y, 0);
    EXPECT_LE(p.window.y, 8);
  }
  expect_uniform(x, -4, 5, 10000);
}

TEST(Draw, ResizedCropsStayInsideAndAreTorchvisions) {
  Augmentation augmentation = parse_augmentation("resized-crop");
  augmentation.height = augmentation.width = 224;
  const ImageShape stored{256, 340, 3};
  const int samples = 20000;
  double area = 0, aspect = 0, centre_x = 0, centre_y = 0, smallest = 1, largest = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const PixelRectangle w = draw(augmentation, stored, 5, 0, i).window;
    ASSERT_GE(w.x, 0);
    ASSERT_GE(w.y, 0);
    ASSERT_LE(w.x + w.width, stored.width);
    ASSERT_LE(w.y + w.height, stored.height);
    const double share = static_cast<double>(w.width) * w.height / (256.0 * 340);
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    area += share / samples;
    aspect += std::log(static_cast<double>(w.width) / w.height) / samples;
    centre_x += (w.x + w.width / 2.0) / 340 / samples;
    centre_y += (w.y + w.height / 2.0) / 256 / samples;
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_GT(largest, 0.95);
  // The expected values are torchvision's means over 200,000 draws. The bounds are five times the
  // standard error of the mean here.
  EXPECT_NEAR(area, kExpectedCrops.area, 5 * 0.26 / std::sqrt(samples));
  EXPECT_NEAR(aspect, kExpectedCrops.log_aspect, 5 * 0.17 / std::sqrt(samples));
  EXPECT_NEAR(centre_x, 0.5, 5 * 0.12 / std::sqrt(samples));
  EXPECT_NEAR(centre_y, 0.5, 5 * 0.10 / std::sqrt(samples));
}

// If no random window fits into the image, draw() must take, as torchvision does, the largest
// window in the centre whose aspect is allowed.
TEST(Draw, AnImpossibleAspectFallsBackToTheCentre) {
  Augmentation augmentation = parse_augmentation("resized-crop");
  augmentation.height = augmentation.width = 4;
  augmentation.min_area = 0.9f;  // the nearly square windows in a long strip are smaller
  EXPECT_EQ(draw(augmentation, {10, 1000, 3}, 1, 0, 0).window, (PixelRectangle{493, 0, 13, 10}));
  EXPECT_EQ(draw(augmentation, {1000, 10, 3}, 1, 0, 0).window, (PixelRectangle{0, 493, 10, 13}));
  // Only a window with the image's own aspect, 1:1.2, has all of the area. A random draw never has
  // exactly this aspect, so the fallback is used.
  augmentation.min_area = augmentation.max_area = 1;
  EXPECT_EQ(draw(augmentation, {100, 120, 3}, 1, 0, 0).window, (PixelRectangle{0, 0, 120, 100}));
}

TEST(Draw, ErasesAsTorchvisionDoes) {
  Augmentation augmentation = parse_augmentation("erase:0.25");
  const int samples = 40000;
  int erased = 0;
  double area = 0, aspect = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const kernels::ErasedRectangle r = draw(augmentation, {224, 160, 3}, 5, 0, i).erased[1];
    if (r.height == 0) {
      EXPECT_EQ(r, kernels::ErasedRectangle{});
      continue;
    }
    ++erased;
    ASSERT_TRUE(r.y >= 0 && r.x >= 0 && r.y + r.height <= 224 && r.x + r.width <= 160);
    area += static_cast<double>(r.height) * r.width / (224.0 * 160);
    aspect += std::log(static_cast<double>(r.height) / r.width);
  }
  EXPECT_NEAR(erased, 0.25 * samples, 5 * std::sqrt(0.25 * 0.75 * samples));
  EXPECT_NEAR(area / erased, kExpectedErasing.area, 5 * 0.09 / std::sqrt(erased));
  EXPECT_NEAR(aspect / erased, kExpectedErasing.log_aspect, 5 * 0.7 / std::sqrt(erased));
  augmentation.erasing = 1;
  for (std::int64_t i = 0; i < 1000; ++i)
    EXPECT_GT(draw(augmentation, {224, 224, 3}, 5, 0, i).erased[1].height, 0);
}

TEST(Draw, ResizesAndTakesTheCentreAsTorchvisionDoes) {
  for (const ExpectedTransform& e : kExpectedTransforms) {
    Augmentation augmentation;
    augmentation.height = augmentation.width = e.crop;
    augmentation.resize_short = e.resize;
    const auto p = draw(augmentation, {e.height, e.width, 3}, 1, 0, 0);
    EXPECT_EQ(p.window, (PixelRectangle{0, 0, e.width, e.height}));
    EXPECT_EQ(p.resized_width, e.resized_width);
    EXPECT_EQ(p.resized_height, e.resized_height);
    EXPECT_EQ(p.top, std::lrint((e.resized_height - e.crop) / 2.0));
    EXPECT_EQ(p.left, std::lrint((e.resized_width - e.crop) / 2.0));
  }
}

// Without resize_short, one side of the resized image must be exactly that of the output. An image
// of the output's size must not be resized.
TEST(Draw, TheLeastResizeCoversTheOutput) {
  Augmentation augmentation;
  for (const ImageShape stored :
       {ImageShape{256, 512, 3}, {512, 256, 3}, {33, 100, 3}, {224, 224, 3}, {10, 7, 3}})
    for (const auto& [height, width] : {std::pair{224, 224}, {100, 224}, {224, 100}, {33, 47}}) {
      augmentation.height = height;
      augmentation.width = width;
      const auto p = draw(augmentation, stored, 1, 0, 0);
      EXPECT_TRUE(p.resized_height == height || p.resized_width == width) << stored.to_string();
      EXPECT_TRUE(p.resized_height >= height && p.resized_width >= width) << stored.to_string();
      // The aspect is preserved except for the rounding of one side.
      EXPECT_NEAR(
          p.resized_width,
          static_cast<double>(p.resized_height) * static_cast<double>(stored.width) /
              static_cast<double>(stored.height),
          std::max<double>(1, static_cast<double>(stored.width) / static_cast<double>(stored.height)) + 0.5);
    }
  const auto p = draw(Augmentation{}, {33, 40, 1}, 1, 0, 0);
  EXPECT_EQ(p.window, (PixelRectangle{0, 0, 40, 33}));
  EXPECT_TRUE(p.resized_height == 33 && p.resized_width == 40 && p.top == 0 && p.left == 0 && p.flip == 0);
}

}  // namespace
}  // namespace convoy::data
