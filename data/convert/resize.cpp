#include "data/convert/resize.h"

#include <algorithm>
#include <cmath>

#include "data/image/resample.h"

namespace convoy::data {
namespace {

struct Target {
  Window window;
  std::int64_t height = 0, width = 0;
};

Target target_of(const ImageShape& shape, const ResizeRule& rule) {
  const auto height = static_cast<std::int32_t>(shape.height), width = static_cast<std::int32_t>(shape.width);
  const std::int32_t side = std::min(height, width);
  // Crop the centre square first and then scale it. Scaling first and cropping then would give the
  // same pixels.
  if (rule.size > 0) return {{(width - side) / 2, (height - side) / 2, side, side}, rule.size, rule.size};
  if (rule.short_side == 0 || side <= rule.short_side) return {{0, 0, width, height}, height, width};
  const auto scaled = [&](std::int64_t extent) { return extent * rule.short_side / side; };
  return {{0, 0, width, height}, scaled(height), scaled(width)};
}

}  // namespace

Image resize(Image image, const ResizeRule& rule) {
  const Target target = target_of(image.shape, rule);
  const bool whole = target.window == Window{0, 0, static_cast<std::int32_t>(image.shape.width),
                                             static_cast<std::int32_t>(image.shape.height)};
  if (whole && target.height == image.shape.height && target.width == image.shape.width) return image;
  Image result{{target.height, target.width, image.shape.channels}, {}};
  result.pixels.resize(static_cast<std::size_t>(result.shape.bytes()));
  Resampler().resize(image.pixels.data(), image.shape, target.window, target.height, target.width,
                     result.pixels.data());
  return result;
}

ImageShape resized_shape(const ImageShape& shape, const ResizeRule& rule) {
  if (shape.height <= 0 || shape.width <= 0) return shape;
  const Target target = target_of(shape, rule);
  return {target.height, target.width, shape.channels};
}

std::int64_t resize_bytes(const ImageShape& shape, const ResizeRule& rule) {
  if (resized_shape(shape, rule) == shape) return 0;
  const Target target = target_of(shape, rule);
  // The resampler has two buffers: the rows at the new width, and the result.
  return (target.window.height * target.width + target.height * target.width) * shape.channels;
}

}  // namespace convoy::data
