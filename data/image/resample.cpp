#include "data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace convoy::data {
namespace {

constexpr std::int64_t kLanes = 4;
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

}  // namespace

std::int64_t Resampler::Filter::taps_for(std::int64_t inputs, std::int64_t outputs) {
  const double support = std::max(static_cast<double>(inputs) / static_cast<double>(outputs), 1.0);
  return std::min<std::int64_t>(static_cast<std::int64_t>(std::ceil(support)) * 2 + 1, inputs);
}

void Resampler::Filter::reserve(std::int64_t inputs, std::int64_t outputs) {
  first.reserve(static_cast<std::size_t>(outputs));
  weight.reserve(static_cast<std::size_t>(outputs * taps_for(inputs, outputs)));
}

void Resampler::Filter::prepare(std::int64_t inputs, std::int64_t outputs) {
  const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
  const double support = std::max(scale, 1.0);
  taps = taps_for(inputs, outputs);
  first.resize(static_cast<std::size_t>(outputs));
  weight.resize(static_cast<std::size_t>(outputs * taps));
  for (std::int64_t i = 0; i < outputs; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto start =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - support)), 0, inputs - taps);
    float* weights = weight.data() + i * taps;
    double sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const double distance = std::abs(static_cast<double>(start + tap) + 0.5 - centre) / support;
      sum += std::max(0.0, 1.0 - distance);
    }
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const double distance = std::abs(static_cast<double>(start + tap) + 0.5 - centre) / support;
      weights[tap] = static_cast<float>(std::max(0.0, 1.0 - distance) / sum);
    }
    first[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(start);
  }
}

void Resampler::reserve(ImageShape shape, std::int64_t height, std::int64_t width) {
  horizontal_.reserve(shape.width, width);
  vertical_.reserve(shape.height, height);
  rows_.reserve(static_cast<std::size_t>(shape.height * width * shape.channels + kLanes));
  row_.reserve(static_cast<std::size_t>(shape.width * shape.channels + kLanes));
  result_.reserve(static_cast<std::size_t>(height * width * shape.channels));
}

void Resampler::shrink_rows(const std::uint8_t* image, ImageShape shape, Window window, std::int64_t width) {
  const std::int64_t channels = shape.channels;
  rows_.resize(static_cast<std::size_t>(window.height * width * channels + kLanes));
  row_.resize(static_cast<std::size_t>(window.width * channels + kLanes));
  for (std::int64_t y = 0; y < window.height; ++y) {
    const std::uint8_t* from = image + ((window.y + y) * shape.width + window.x) * channels;
    for (std::int64_t i = 0; i < window.width * channels; ++i) row_[static_cast<std::size_t>(i)] = from[i];
    shrink_row(rows_.data() + y * width * channels, width, channels);
  }
}

// Pixels of up to four channels are one vector: what it holds of the next pixel is overwritten by that one's
// turn (hence the room for kLanes more behind both arrays).
void Resampler::shrink_row(float* to, std::int64_t width, std::int64_t channels) const {
  const std::int64_t taps = horizontal_.taps;
  const float* weights = horizontal_.weight.data();
  for (std::int64_t x = 0; x < width; ++x, weights += taps, to += channels) {
    const float* from = row_.data() + horizontal_.first[static_cast<std::size_t>(x)] * channels;
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      Vector sum{};
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        Vector pixel;
        std::memcpy(&pixel, from + tap * channels + c, sizeof pixel);
        sum += weights[tap] * pixel;
      }
      std::memcpy(to + c, &sum, sizeof sum);
    }
  }
}

const float* Resampler::resample(const std::uint8_t* image, ImageShape shape, Window window,
                                 std::int64_t height, std::int64_t width) {
  horizontal_.prepare(window.width, width);
  vertical_.prepare(window.height, height);
  shrink_rows(image, shape, window, width);
  const std::int64_t row_size = width * shape.channels, taps = vertical_.taps;
  result_.resize(static_cast<std::size_t>(height * row_size));
  for (std::int64_t y = 0; y < height; ++y) {
    float* to = result_.data() + y * row_size;
    const float* from = rows_.data() + vertical_.first[static_cast<std::size_t>(y)] * row_size;
    const float* weights = vertical_.weight.data() + y * taps;
    for (std::int64_t i = 0; i < row_size; ++i) to[i] = weights[0] * from[i];
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      const float* row = from + tap * row_size;
      const float factor = weights[tap];
      if (factor == 0) continue;
      for (std::int64_t i = 0; i < row_size; ++i) to[i] += factor * row[i];
    }
  }
  return result_.data();
}

}  // namespace convoy::data
