// Images of random bytes for benchmarks. They take almost no time to make. Their labels cannot be
// learnt from them.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

class RandomImages final : public ImageSet {
 public:
  // Makes `size` images. The pixels repeat after 64 MiB, so later images are copies. Image i has
  // label i % classes.
  RandomImages(ImageShape shape, std::int32_t classes, std::int64_t size, std::uint64_t seed);
  std::int64_t size() const override { return size_; }
  ImageShape shape() const override { return shape_; }
  std::int32_t label(std::int64_t sample) const override {
    return static_cast<std::int32_t>(sample % classes_);
  }
  ImageFormat format() const override { return ImageFormat::pixels; }
  std::int64_t largest_bytes() const override { return shape_.bytes(); }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override;

 private:
  ImageShape shape_;
  std::int32_t classes_;
  std::int64_t size_, distinct_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace convoy::data
