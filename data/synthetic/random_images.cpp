#include "data/synthetic/random_images.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/device/philox.h"

namespace convoy::data {

RandomImages::RandomImages(ImageShape shape, std::int32_t classes, std::int64_t size, std::uint64_t seed)
    : shape_(shape), classes_(classes), size_(size), distinct_(0) {
  if (shape.bytes() <= 0 || classes <= 0 || size <= 0) {
    throw std::invalid_argument("RandomImages: shape, classes and size must be positive");
  }
  distinct_ = std::clamp<std::int64_t>((std::int64_t{64} << 20) / shape.bytes(), 1, size);
  pixels_.resize(static_cast<std::size_t>(distinct_ * shape.bytes()));
  for (std::size_t at = 0; at < pixels_.size(); at += 16) {
    const kernels::Philox4 words = kernels::philox(seed, at);
    std::memcpy(pixels_.data() + at, words.word, std::min<std::size_t>(16, pixels_.size() - at));
  }
}

std::span<const std::uint8_t> RandomImages::stored(std::int64_t sample, std::span<std::uint8_t>) const {
  return std::span(pixels_).subspan(static_cast<std::size_t>(sample % distinct_ * shape_.bytes()),
                                    static_cast<std::size_t>(shape_.bytes()));
}

}  // namespace convoy::data
