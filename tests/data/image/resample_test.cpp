#include "data/image/resample.h"

#include <algorithm>
#include <cmath>

#include "data/convert/resize.h"
#include "tests/data/image/expected_resampling.h"
#include "tests/data/image/vector_levels.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

// Returns the same pixels as pixels() in expected_resampling.py.
Bytes pixels(std::int64_t count) {
  Bytes values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (std::uint8_t& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<std::uint8_t>(state >> 24);
  }
  return values;
}

std::uint64_t fnv(const Bytes& values) {
  std::uint64_t code = 0xCBF29CE484222325u;
  for (const std::uint8_t value : values) code = (code ^ value) * 0x100000001B3u;
  return code;
}

TEST(Resample, HasPillowsBits) {
  for (const VectorLevel level : vector_levels()) {
    Resampler resampler(level);
    for (const ExpectedResize& e : kExpectedResizes) {
      const ImageShape shape{e.height, e.width, e.channels};
      Bytes result(static_cast<std::size_t>(e.output_height) * e.output_width * e.channels);
      const Bytes image = pixels(shape.bytes());
      resampler.resize(image.data() + (std::int64_t{e.y} * e.width + e.x) * e.channels, shape,
                       resized_axis(e.window_height, e.output_height, 0, e.output_height),
                       resized_axis(e.window_width, e.output_width, 0, e.output_width), result.data());
      EXPECT_EQ(fnv(result), e.hash) << "level " << static_cast<int>(level) << ": " << shape.to_string()
                                     << " from " << e.x << "," << e.y << " " << e.window_width << "x"
                                     << e.window_height << " to " << e.output_width << "x" << e.output_height;
    }
  }
}

TEST(Resample, ACentreCropHasTorchvisionsBits) {
  for (const VectorLevel level : vector_levels()) {
    Resampler resampler(level);
    for (const ExpectedTransform& e : kExpectedTransforms) {
      const ImageShape shape{e.height, e.width, 3};
      // Python's round() rounds a half to the even neighbour, as lrint() does by default.
      const auto offset = [&](int resized) { return std::lrint((resized - e.crop) / 2.0); };
      Bytes result(static_cast<std::size_t>(e.crop) * e.crop * 3);
      resampler.resize(pixels(shape.bytes()).data(), shape,
                       resized_axis(e.height, e.resized_height, offset(e.resized_height), e.crop),
                       resized_axis(e.width, e.resized_width, offset(e.resized_width), e.crop),
                       result.data());
      EXPECT_EQ(fnv(result), e.hash) << "level " << static_cast<int>(level) << ": " << e.width << "x"
                                     << e.height << " by " << e.resize << " and " << e.crop;
    }
  }
}

// `data convert --size N` must give what torchvision's Resize(N) and CenterCrop(N) give.
TEST(Resample, ConversionToASizeHasTorchvisionsBits) {
  int cases = 0;
  for (const ExpectedTransform& e : kExpectedTransforms) {
    if (e.resize != e.crop) continue;
    ++cases;
    const ImageShape shape{e.height, e.width, 3};
    const Image image = resize({shape, pixels(shape.bytes())}, {.size = e.crop});
    EXPECT_EQ(image.shape, (ImageShape{e.crop, e.crop, 3}));
    EXPECT_EQ(fnv(image.pixels), e.hash) << e.width << "x" << e.height << " to " << e.crop;
  }
  EXPECT_GE(cases, 6);
}

// All levels of vector instructions must give the same bits, for any number of channels.
TEST(Resample, EveryLevelHasTheSameBits) {
  for (std::int64_t channels = 1; channels <= 9; ++channels) {
    const ImageShape shape{57, 83, channels};
    const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
    for (const auto& [height, width] : {std::pair{20, 37}, {57, 37}, {20, 83}, {99, 101}, {3, 2}, {57, 83}}) {
      Bytes expected(static_cast<std::size_t>(height * width * channels)), actual(expected);
      const auto rows = resized_axis(57, height, 0, height), columns = resized_axis(83, width, 0, width);
      Resampler(VectorLevel::portable).resize(image.data(), shape, rows, columns, expected.data());
      for (const VectorLevel level : vector_levels()) {
        Resampler(level).resize(image.data(), shape, rows, columns, actual.data());
        EXPECT_EQ(actual, expected) << "level " << static_cast<int>(level) << ", " << width << "x" << height
                                    << "x" << channels;
      }
    }
  }
}

kernels::SampleTransform whole_of(ImageShape shape, std::int64_t height, std::int64_t width, bool flip) {
  kernels::SampleTransform transform;
  transform.rows = resized_axis(shape.height, height, 0, height);
  transform.columns = resized_axis(shape.width, width, 0, width);
  transform.pitch = static_cast<std::int32_t>(shape.width);
  transform.flip = flip ? 1 : 0;
  return transform;
}

TEST(Resample, MirroringReversesTheColumns) {
  const ImageShape shape{23, 31, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
  for (const VectorLevel level : vector_levels()) {
    Resampler resampler(level);
    for (const auto& [height, width] : {std::pair{12, 14}, {23, 31}, {40, 50}, {12, 31}, {23, 14}}) {
      Bytes plain(static_cast<std::size_t>(height * width * 3)), mirrored(plain);
      const ImageShape output{height, width, 3};
      resampler.resample(image.data(), whole_of(shape, height, width, false), output, nullptr, plain.data());
      resampler.resample(image.data(), whole_of(shape, height, width, true), output, nullptr,
                         mirrored.data());
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          for (int c = 0; c < 3; ++c)
            ASSERT_EQ(mirrored[static_cast<std::size_t>((y * width + x) * 3 + c)],
                      plain[static_cast<std::size_t>((y * width + width - 1 - x) * 3 + c)]);
    }
  }
}

TEST(Resample, MirroredTwiceIsTheImage) {
  const ImageShape shape{7, 5, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
  Bytes once(image.size()), twice(image.size());
  Resampler resampler;
  const auto transform = whole_of(shape, 7, 5, true);
  resampler.resample(image.data(), transform, shape, nullptr, once.data());
  resampler.resample(once.data(), transform, shape, nullptr, twice.data());
  EXPECT_NE(once, image);
  EXPECT_EQ(twice, image);
}

TEST(Resample, TheSameSizeIsACopy) {
  const ImageShape shape{7, 5, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
  Bytes result(image.size());
  Resampler().resize(image.data(), shape, resized_axis(7, 7, 0, 7), resized_axis(5, 5, 0, 5), result.data());
  EXPECT_EQ(result, image);
}

// When an image is reduced, all pixels must count. If only every tenth pixel of these stripes
// counted, the result would be all black or all white.
TEST(Resample, FineDetailIsAveraged) {
  Bytes stripes(100 * 100), result(10 * 10);
  for (std::size_t i = 0; i < stripes.size(); ++i) stripes[i] = i % 2 == 0 ? 0 : 255;
  const auto axis = resized_axis(100, 10, 0, 10);
  Resampler().resize(stripes.data(), {100, 100, 1}, axis, axis, result.data());
  for (const std::uint8_t value : result) EXPECT_NEAR(value, 127.5, 4);
}

// A constant image must stay constant, although the rounded weights may not add up to exactly 1.
TEST(Resample, AConstantStays) {
  for (const std::uint8_t value : {0, 1, 127, 254, 255}) {
    const Bytes image(40 * 300 * 3, value);
    for (const int size : {1, 7, 39, 64, 255}) {
      Bytes result(static_cast<std::size_t>(size) * size * 3);
      Resampler().resize(image.data(), {40, 300, 3}, resized_axis(40, size, 0, size),
                         resized_axis(300, size, 0, size), result.data());
      EXPECT_EQ(result, Bytes(result.size(), value)) << size;
    }
  }
}

}  // namespace
}  // namespace convoy::data
