#include "data/store/channel_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace convoy::data {
namespace {

constexpr int kFractionBits = 20;
// The number of bytes that are summed in parallel. It is a multiple of the usual channel counts C
// (1, 3 and 4), so lane i always holds channel i % C.
constexpr std::size_t kLanes = 48;
// At most this many rows of kLanes bytes are summed in 32 bits, so that the sums of their squares
// do not overflow.
constexpr std::size_t kRowsAtOnce = 65536;

struct Sums {
  std::vector<std::uint64_t> sum, squares;
};

void add_lanes(Sums& sums, const std::uint8_t* pixels, std::size_t rows) {
  std::array<std::uint32_t, kLanes> sum{}, squares{};
  for (std::size_t row = 0; row < rows; ++row, pixels += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint32_t value = pixels[i];
      sum[i] += value;
      squares[i] += value * value;
    }
  }
  const std::size_t channels = sums.sum.size();
  for (std::size_t i = 0; i < kLanes; ++i) {
    sums.sum[i % channels] += sum[i];
    sums.squares[i % channels] += squares[i];
  }
}

std::uint64_t scaled_mean(std::uint64_t sum, std::uint64_t pixels) {
  const std::uint64_t rest = sum % pixels;
  return (sum / pixels << kFractionBits) + ((rest << kFractionBits) + pixels / 2) / pixels;
}

}  // namespace

ChannelStatistics::Image ChannelStatistics::of(std::span<const std::uint8_t> pixels, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  Sums sums{std::vector<std::uint64_t>(count), std::vector<std::uint64_t>(count)};
  std::size_t done = 0;
  while (kLanes % count == 0 && pixels.size() - done >= kLanes) {
    const std::size_t rows = std::min((pixels.size() - done) / kLanes, kRowsAtOnce);
    add_lanes(sums, pixels.data() + done, rows);
    done += rows * kLanes;
  }
  for (; done < pixels.size(); ++done) {
    const std::uint64_t value = pixels[done];
    sums.sum[done % count] += value;
    sums.squares[done % count] += value * value;
  }
  const std::uint64_t per_channel = pixels.size() / count;
  Image image;
  for (const std::uint64_t sum : sums.sum) image.mean.push_back(scaled_mean(sum, per_channel));
  for (const std::uint64_t sum : sums.squares) image.square.push_back(scaled_mean(sum, per_channel));
  return image;
}

void ChannelStatistics::add(const Image& image) {
  mean_.resize(image.mean.size());
  square_.resize(image.square.size());
  for (std::size_t c = 0; c < mean_.size(); ++c) {
    mean_[c] += image.mean[c];
    square_[c] += image.square[c];
  }
  ++images_;
}

std::vector<float> ChannelStatistics::mean() const {
  std::vector<float> result;
  for (const std::uint64_t sum : mean_)
    result.push_back(static_cast<float>(std::ldexp(static_cast<double>(sum), -kFractionBits) /
                                        static_cast<double>(images_) / 255.0));
  return result;
}

std::vector<float> ChannelStatistics::deviation() const {
  std::vector<float> result;
  for (std::size_t c = 0; c < mean_.size(); ++c) {
    const double count = static_cast<double>(images_);
    const double average = std::ldexp(static_cast<double>(mean_[c]), -kFractionBits) / count;
    const double variance =
        std::ldexp(static_cast<double>(square_[c]), -kFractionBits) / count - average * average;
    result.push_back(static_cast<float>(std::max(std::sqrt(std::max(variance, 0.0)), 1.0) / 255.0));
  }
  return result;
}

}  // namespace convoy::data
