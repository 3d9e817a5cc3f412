#include "data/convert/resize.h"

#include <algorithm>

#include "data/image/resample.h"

namespace convoy::data {
namespace {

struct Target {
  kernels::AxisMap rows, columns;
  ImageShape shape;
};

Target target_of(const ImageShape& shape, const ResizeRule& rule) {
  const std::int64_t side = std::min(shape.height, shape.width);
  const bool unchanged = rule.size == 0 && (rule.short_side == 0 || side <= rule.short_side);
  const std::int64_t short_side = unchanged ? side : std::max(rule.size, rule.short_side);
  const auto axis = [&](std::int64_t extent) {
    const std::int64_t resized = extent * short_side / side;  // rounded down, as torchvision does
    if (rule.size == 0) return resized_axis(extent, resized, 0, resized);
    return resized_axis(extent, resized, half_rounded_to_even(resized - rule.size), rule.size);
  };
  Target target{axis(shape.height), axis(shape.width), shape};
  target.shape.height = target.rows.end;
  target.shape.width = target.columns.end;
  return target;
}

}  // namespace

Image resize(Image image, const ResizeRule& rule) {
  const Target target = target_of(image.shape, rule);
  if (target.shape == image.shape) return image;
  Image result{target.shape, {}};
  result.pixels.resize(static_cast<std::size_t>(result.shape.bytes()));
  Resampler().resize(image.pixels.data(), image.shape, target.rows, target.columns, result.pixels.data());
  return result;
}

ImageShape resized_shape(const ImageShape& shape, const ResizeRule& rule) {
  if (shape.height <= 0 || shape.width <= 0) return shape;
  return target_of(shape, rule).shape;
}

std::int64_t resize_bytes(const ImageShape& shape, const ResizeRule& rule) {
  const ImageShape resized = resized_shape(shape, rule);
  if (resized == shape) return 0;
  // The resampler has two buffers: the rows at the new width, and the result.
  return target_of(shape, rule).rows.size * resized.width * shape.channels + resized.bytes();
}

}  // namespace convoy::data
