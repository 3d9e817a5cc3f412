#include "data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

// The definition, written out: every output pixel is the average of the window's pixels weighted with a
// triangle around its centre, in double precision.
double resampled(const Bytes& image, ImageShape shape, Window window, std::int64_t height, std::int64_t width,
                 std::int64_t y, std::int64_t x, std::int64_t c) {
  const double sy = static_cast<double>(window.height) / static_cast<double>(height);
  const double sx = static_cast<double>(window.width) / static_cast<double>(width);
  double sum = 0, weights = 0;
  for (std::int64_t j = 0; j < window.height; ++j) {
    const double wy =
        1 - std::abs(static_cast<double>(j) + 0.5 - (static_cast<double>(y) + 0.5) * sy) / std::max(sy, 1.0);
    if (wy <= 0) continue;
    for (std::int64_t i = 0; i < window.width; ++i) {
      const double wx = 1 - std::abs(static_cast<double>(i) + 0.5 - (static_cast<double>(x) + 0.5) * sx) /
                                std::max(sx, 1.0);
      if (wx <= 0) continue;
      sum +=
          wx * wy *
          image[static_cast<std::size_t>(((window.y + j) * shape.width + window.x + i) * shape.channels + c)];
      weights += wx * wy;
    }
  }
  return sum / weights;
}

TEST(Resample, AgreesWithTheDefinition) {
  const ImageShape shape{23, 31, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
  Resampler resampler;
  const std::vector<std::pair<Window, std::array<std::int64_t, 2>>> cases{
      {{0, 0, 31, 23}, {10, 12}}, {{0, 0, 31, 23}, {50, 70}}, {{5, 3, 17, 20}, {20, 17}},
      {{30, 22, 1, 1}, {4, 4}},   {{2, 1, 29, 2}, {9, 3}},    {{0, 0, 31, 23}, {1, 1}}};
  for (const auto& [window, size] : cases) {
    const auto [height, width] = size;
    const float* result = resampler.resample(image.data(), shape, window, height, width);
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        for (std::int64_t c = 0; c < 3; ++c) {
          ASSERT_NEAR(result[(y * width + x) * 3 + c],
                      resampled(image, shape, window, height, width, y, x, c), 1e-3)
              << window.width << "x" << window.height << " to " << width << "x" << height << " at " << x
              << "," << y;
        }
      }
    }
  }
}

TEST(Resample, TheSameSizeIsACopy) {
  const ImageShape shape{7, 5, 3};
  const Bytes image = random_bytes(static_cast<std::size_t>(shape.bytes()), 2);
  Resampler resampler;
  const float* result = resampler.resample(image.data(), shape, {0, 0, 5, 7}, 7, 5);
  for (std::size_t i = 0; i < image.size(); ++i) EXPECT_EQ(result[i], image[i]);
}

// One reduced pixel in ten of a fine pattern would hit only black or only white without the wide filter.
TEST(Resample, FineDetailIsAveraged) {
  const ImageShape shape{100, 100, 1};
  Bytes stripes(100 * 100);
  for (std::size_t i = 0; i < stripes.size(); ++i) stripes[i] = i % 2 == 0 ? 0 : 255;
  Resampler resampler;
  const float* result = resampler.resample(stripes.data(), shape, {0, 0, 100, 100}, 10, 10);
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(result[i], 127.5, 4);
}

}  // namespace
}  // namespace convoy::data
