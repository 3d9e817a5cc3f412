// Computes mean and standard deviation of every channel over the training images of a set. Every
// image has the same weight, whatever its size, as in training. The sums are integers, so the
// result does not depend on the order of the images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::data {

class ChannelStatistics {
 public:
  // Mean and mean square of each channel of one image, as fixed-point numbers with 20 fraction bits
  // of values from 0 to 255.
  struct Image {
    std::vector<std::uint64_t> mean, square;
  };
  // Returns the statistics of one image, whose pixels are uint8 [H, W, C].
  static Image of(std::span<const std::uint8_t> pixels, std::int64_t channels);

  // All images must have the same number of channels.
  void add(const Image& image);

  // Both return one value per channel, for pixel values from 0 to 1. The deviation is at least
  // 1/255, so that normalising a constant channel does not divide by zero.
  std::vector<float> mean() const;
  std::vector<float> deviation() const;

 private:
  std::int64_t images_ = 0;
  std::vector<std::uint64_t> mean_, square_;
};

}  // namespace convoy::data
