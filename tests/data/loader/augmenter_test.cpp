#include <algorithm>
#include <cmath>

#include "data/loader/augmentation.h"
#include "tests/data/image/vector_levels.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

const std::vector<float> kMean{0.4f, 0.5f, 0.6f}, kStd{0.2f, 0.25f, 0.3f};

std::vector<float> first(const std::vector<float>& values, std::int64_t count) {
  return {values.begin(), values.begin() + count};
}

std::size_t at(ImageLayout layout, ImageShape shape, std::int64_t y, std::int64_t x, std::int64_t c) {
  return static_cast<std::size_t>(layout == ImageLayout::row_major
                                      ? (c * shape.height + y) * shape.width + x
                                      : (y * shape.width + x) * shape.channels + c);
}

bool erased(const AugmentationParameters& p, std::int64_t y, std::int64_t x) {
  return std::any_of(std::begin(p.erased), std::end(p.erased), [&](const kernels::ErasedRectangle& r) {
    return y >= r.y && y < r.y + r.height && x >= r.x && x < r.x + r.width;
  });
}

// Returns one value of the expected output, which is computed step by step: crop, mirror, erase,
// normalise.
float expected_value(const Bytes& image, ImageShape stored, ImageShape output,
                     const AugmentationParameters& p, std::int64_t y, std::int64_t x, std::int64_t c) {
  if (erased(p, y, x)) return 0;
  const std::int64_t column = p.window.x + (p.flip != 0 ? output.width - 1 - x : x), row = p.window.y + y;
  if (column < 0 || column >= stored.width || row < 0 || row >= stored.height) return 0;
  const auto channel = static_cast<std::size_t>(c);
  const double value = image[static_cast<std::size_t>((row * stored.width + column) * stored.channels + c)];
  return static_cast<float>((value / 255 - kMean[channel]) / kStd[channel]);
}

TEST(Augmenter, CutsMirrorsBlanksAndNormalises) {
  for (const std::int64_t channels : {1, 2, 3}) {
    const ImageShape stored{11, 9, channels};
    const Bytes image = random_bytes(static_cast<std::size_t>(stored.bytes()), 1);
    Augmentation augmentation = parse_augmentation("crop,flip,cutout:3,erase:0.5");
    augmentation.height = 8;
    augmentation.width = 10;
    const ImageShape output = augmentation.output_shape(stored);
    for (const ImageLayout layout : {ImageLayout::row_major, ImageLayout::channels_last}) {
      Augmenter augmenter(augmentation, stored, first(kMean, channels), first(kStd, channels), layout);
      for (std::int64_t sample = 0; sample < 200; ++sample) {
        const auto parameters = draw(augmentation, stored, 3, 1, sample);
        std::vector<float> result(static_cast<std::size_t>(output.bytes()), 99.0f);
        augmenter.apply(image.data(), place_in_whole(parameters, stored, output, 0), result.data());
        for (std::int64_t y = 0; y < output.height; ++y) {
          for (std::int64_t x = 0; x < output.width; ++x) {
            for (std::int64_t c = 0; c < channels; ++c) {
              ASSERT_NEAR(result[at(layout, output, y, x, c)],
                          expected_value(image, stored, output, parameters, y, x, c), 1e-5)
                  << "sample " << sample << " at " << x << "," << y;
            }
          }
        }
      }
    }
  }
}

TEST(Augmenter, ResizesMirrorsBlanksAndNormalises) {
  const ImageShape stored{20, 30, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(stored.bytes()), 1);
  Augmentation augmentation = parse_augmentation("resized-crop,flip,erase:0.5");
  augmentation.height = augmentation.width = 12;
  const ImageShape output = augmentation.output_shape(stored);
  Bytes plain(static_cast<std::size_t>(output.bytes()));
  for (const ImageLayout layout : {ImageLayout::row_major, ImageLayout::channels_last}) {
    Augmenter augmenter(augmentation, stored, kMean, kStd, layout);
    for (std::int64_t sample = 0; sample < 100; ++sample) {
      const auto parameters = draw(augmentation, stored, 3, 1, sample);
      std::vector<float> result(static_cast<std::size_t>(output.bytes()));
      augmenter.apply(image.data(), place_in_whole(parameters, stored, output, 0), result.data());
      const PixelRectangle window = parameters.window;
      Resampler().resize(image.data() + (window.y * stored.width + window.x) * 3, stored,
                         resized_axis(window.height, 12, 0, 12), resized_axis(window.width, 12, 0, 12),
                         plain.data());
      for (std::int64_t y = 0; y < 12; ++y) {
        for (std::int64_t x = 0; x < 12; ++x) {
          for (std::int64_t c = 0; c < 3; ++c) {
            const std::int64_t column = parameters.flip != 0 ? 11 - x : x;
            const auto channel = static_cast<std::size_t>(c);
            const double value = plain[static_cast<std::size_t>((y * 12 + column) * 3 + c)];
            const double normal = (value / 255 - kMean[channel]) / kStd[channel];
            ASSERT_NEAR(result[at(layout, output, y, x, c)], erased(parameters, y, x) ? 0 : normal, 1e-5);
          }
        }
      }
    }
  }
}

// At every level of vector instructions, the result must be rounded after the product and again
// after the sum, as on devices. A fused multiply-add would round only once.
TEST(Augmenter, EveryLevelNormalisesWithTheSameBits) {
  for (const std::int64_t channels : {1, 2, 3, 4, 5}) {
    const ImageShape shape{37, 41, channels};
    const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 1);
    std::vector<ScaleShift> factors;
    for (std::int64_t c = 0; c < channels; ++c)
      factors.push_back({0.0171f + 0.0013f * static_cast<float>(c), -2.1f + 0.3f * static_cast<float>(c)});
    const auto transform = place({{0, 0, 41, 37}, 37, 41, 0, 0, 0, {}, {}}, shape, shape).transform;
    for (const ImageLayout layout : {ImageLayout::row_major, ImageLayout::channels_last})
      for (const VectorLevel level : vector_levels()) {
        std::vector<float> result(image.size());
        Normaliser(shape, factors, layout, level).apply(image.data(), transform, result.data());
        for (std::int64_t i = 0; i < shape.bytes(); ++i) {
          const std::int64_t c = i % channels, pixel = i / channels;
          const ScaleShift& factor = factors[static_cast<std::size_t>(c)];
          volatile float product = static_cast<float>(image[static_cast<std::size_t>(i)]) * factor.scale;
          const float expected = product + factor.shift;
          ASSERT_EQ(result[at(layout, shape, pixel / 41, pixel % 41, c)], expected)
              << "level " << static_cast<int>(level) << ", channels " << channels;
        }
      }
  }
}

Bytes cut_of(const Bytes& image, ImageShape stored, PixelRectangle cut) {
  Bytes bytes;
  for (std::int64_t y = cut.y; y < cut.y + cut.height; ++y) {
    const auto row = image.begin() + (y * stored.width + cut.x) * stored.channels;
    bytes.insert(bytes.end(), row, row + cut.width * stored.channels);
  }
  return bytes;
}

// The cut (the part of an image that is read) must hold all pixels that the output needs, but no
// further rows or columns.
TEST(Place, TheCutIsAllThatIsRead) {
  const ImageShape stored{61, 47, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(stored.bytes()), 1);
  Resampler resampler;
  const std::vector<std::uint8_t> fill{1, 2, 3};
  for (const char* words : {"crop:4,flip", "resized-crop,flip", "none"})
    for (const int size : {9, 32, 47}) {
      Augmentation augmentation = parse_augmentation(words);
      augmentation.height = augmentation.width = size;
      augmentation.resize_short = 47;
      const ImageShape output = augmentation.output_shape(stored);
      Bytes whole(static_cast<std::size_t>(output.bytes())), from_cut(whole), changed(whole);
      for (std::int64_t sample = 0; sample < 40; ++sample) {
        const auto parameters = draw(augmentation, stored, 3, 1, sample);
        const PlacedSample placed = place(parameters, stored, output);
        Bytes cut = cut_of(image, stored, placed.cut);
        ASSERT_TRUE(placed.cut.x >= 0 && placed.cut.x + placed.cut.width <= stored.width);
        ASSERT_TRUE(placed.cut.y >= 0 && placed.cut.y + placed.cut.height <= stored.height);
        resampler.resample(image.data(), place_in_whole(parameters, stored, output, 0), output, fill.data(),
                           whole.data());
        resampler.resample(cut.data(), placed.transform, output, fill.data(), from_cut.data());
        ASSERT_EQ(from_cut, whole) << words << " " << size << ", sample " << sample;
        // If the first and the last pixel of the cut change, the result must change, too.
        cut.front() = static_cast<std::uint8_t>(cut.front() ^ 128);
        cut.back() = static_cast<std::uint8_t>(cut.back() ^ 128);
        resampler.resample(cut.data(), placed.transform, output, fill.data(), changed.data());
        const auto differs = [&](std::int64_t y, std::int64_t x) {
          const std::int64_t pixel = (y * size + x) * 3;
          return !std::equal(changed.begin() + pixel, changed.begin() + pixel + 3, whole.begin() + pixel);
        };
        const auto& t = placed.transform;
        const auto left = t.flip != 0 ? size - t.columns.end : t.columns.begin;
        const auto right = t.flip != 0 ? size - 1 - t.columns.begin : t.columns.end - 1;
        // At this size, averaging may hide the change of one pixel.
        if (size == 9) continue;
        ASSERT_TRUE(differs(t.rows.begin, t.flip != 0 ? right : left)) << words << " " << size;
        ASSERT_TRUE(differs(t.rows.end - 1, t.flip != 0 ? left : right)) << words << " " << size;
      }
    }
}

TEST(Place, ACropThatMissesTheImageReadsNothing) {
  const ImageShape stored{4, 4, 3}, output{4, 4, 3};
  const PlacedSample placed = place({{-9, 0, 4, 4}, 4, 4, 0, 0, 0, {}, {}}, stored, output);
  EXPECT_EQ(placed.cut.width * placed.cut.height, 0);
  Augmenter augmenter({}, stored, kMean, kStd, ImageLayout::row_major);
  std::vector<float> result(48, 99.0f);
  augmenter.apply(nullptr, placed.transform, result.data());
  EXPECT_EQ(result, std::vector<float>(48, 0.0f));
}

// Padding must be exactly 0 after normalisation. If an image operation may move the padding, it
// must have the colour nearest to the mean instead.
TEST(Place, PaddingIsZeroUnlessItMayHaveMoved) {
  const ImageShape stored{4, 4, 3}, output{4, 4, 3};
  AugmentationParameters parameters{{-2, 1, 4, 4}, 4, 4, 0, 0, 1, {}, {}};
  Augmenter augmenter({}, stored, kMean, kStd, ImageLayout::channels_last);
  const Bytes image(48, 200);
  std::vector<float> still(48), moved(48);
  augmenter.apply(image.data(), place_in_whole(parameters, stored, output, 0), still.data());
  parameters.ops[0].kind = kernels::ImageOpKind::posterize;
  augmenter.apply(image.data(), place_in_whole(parameters, stored, output, 0), moved.data());
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 4; ++x) {
      const bool padding = x >= 2 || y == 3;
      const std::size_t i = at(ImageLayout::channels_last, output, y, x, 0);
      EXPECT_EQ(still[i] == 0, padding) << x << "," << y;
      EXPECT_NEAR(moved[i], padding ? 0 : (200 / 255.0 - 0.4) / 0.2, 0.01) << x << "," << y;
    }
}

// A JPEG decoder can reduce an image by averaging squares of pixels. The output from such an image
// must be nearly the same as from the whole image.
TEST(Place, AReducedImageGivesTheSamePicture) {
  const ImageShape stored{203, 301, 1}, output{20, 24, 1};
  Bytes image(static_cast<std::size_t>(stored.bytes()));
  for (std::int64_t y = 0; y < stored.height; ++y)
    for (std::int64_t x = 0; x < stored.width; ++x)
      image[static_cast<std::size_t>(y * stored.width + x)] =
          static_cast<std::uint8_t>(127.5 + 60 * std::sin(0.05 * static_cast<double>(x)) +
                                    60 * std::cos(0.04 * static_cast<double>(y)));
  Augmentation augmentation = parse_augmentation("resized-crop,flip");
  augmentation.height = 20;
  augmentation.width = 24;
  augmentation.min_area = 0.3f;
  Resampler resampler;
  for (const int reduction : {2, 4}) {
    const ImageShape reduced{(203 + reduction - 1) / reduction, (301 + reduction - 1) / reduction, 1};
    Bytes small(static_cast<std::size_t>(reduced.bytes()));
    for (std::int64_t y = 0; y < reduced.height; ++y)
      for (std::int64_t x = 0; x < reduced.width; ++x) {
        int sum = 0;
        for (int j = 0; j < reduction; ++j)
          for (int i = 0; i < reduction; ++i)
            sum += image[static_cast<std::size_t>(std::min<std::int64_t>(y * reduction + j, 202) * 301 +
                                                  std::min<std::int64_t>(x * reduction + i, 300))];
        small[static_cast<std::size_t>(y * reduced.width + x)] =
            static_cast<std::uint8_t>(sum / (reduction * reduction));
      }
    double difference = 0;
    for (std::int64_t sample = 0; sample < 50; ++sample) {
      const auto parameters = draw(augmentation, stored, 1, 0, sample);
      ASSERT_GE(parameters.scale(), reduction == 4 ? 4 : 2);
      const PlacedSample placed = place(parameters, stored, output, reduction);
      ASSERT_TRUE(placed.cut.x + placed.cut.width <= reduced.width &&
                  placed.cut.y + placed.cut.height <= reduced.height);
      Bytes whole(static_cast<std::size_t>(output.bytes())), result(whole);
      resampler.resample(image.data(), place_in_whole(parameters, stored, output, 0), output, nullptr,
                         whole.data());
      resampler.resample(cut_of(small, reduced, placed.cut).data(), placed.transform, output, nullptr,
                         result.data());
      for (std::size_t i = 0; i < whole.size(); ++i)
        difference += std::abs(whole[i] - result[i]) / static_cast<double>(whole.size() * 50);
    }
    EXPECT_LT(difference, 1.2) << "levels of 255, reduced by " << reduction;
  }
}

}  // namespace
}  // namespace convoy::data
