// Computes mean and standard deviation of every channel over a set's training images. Each image
// counts the same, whatever its size, as it does in training. The sums are integers, so that the
// order of the images changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::data {

class ChannelStatistics {
 public:
  // One image's mean and mean square per channel, on the scale 0..255 with 20 bits of fraction.
  struct Image {
    std::vector<std::uint64_t> mean, square;
  };
  // Returns the statistics of one image, whose pixels are uint8 [H, W, C].
  static Image of(std::span<const std::uint8_t> pixels, std::int64_t channels);

  // All images must have the same number of channels.
  void add(const Image& image);

  // Return one value per channel on the scale 0 to 1. The deviation is at least one grey level, so
  // that normalising a constant channel does not divide by zero.
  std::vector<float> mean() const;
  std::vector<float> deviation() const;

 private:
  std::int64_t images_ = 0;
  std::vector<std::uint64_t> mean_, square_;
};

}  // namespace convoy::data
