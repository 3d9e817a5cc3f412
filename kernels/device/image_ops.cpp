#include "kernels/device/image_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "kernels/device/pixel_ops.h"

namespace convoy::kernels {
namespace {

using Table = std::array<std::uint8_t, 256>;  // maps each level (0 to 255) to its new level

std::uint64_t sum_of_grey(const std::uint8_t* image, std::int64_t pixels, int channels) {
  std::uint64_t sum = 0;
  if (channels == 1)
    for (std::int64_t i = 0; i < pixels; ++i) sum += image[i];
  else
    for (std::int64_t i = 0; i < pixels; ++i)
      sum += static_cast<std::uint64_t>(pixel::grey(image[3 * i], image[3 * i + 1], image[3 * i + 2]));
  return sum;
}

using Histogram = std::array<std::uint32_t, 256>;

Histogram histogram_of(const std::uint8_t* channel, std::int64_t pixels, int channels) {
  Histogram histogram{};
  for (std::int64_t i = 0; i < pixels; ++i) ++histogram[channel[i * channels]];
  return histogram;
}

pixel::Range range_of(const Histogram& histogram) {
  pixel::Range range{0, 255};
  while (histogram[range.low] == 0) ++range.low;
  while (histogram[range.high] == 0) --range.high;
  return range;
}

Table equalizing_table(const Histogram& histogram, std::int64_t pixels) {
  const std::uint32_t of_highest = histogram[range_of(histogram).high];
  const std::uint32_t step = (static_cast<std::uint32_t>(pixels) - of_highest) / 255;
  Table table{};
  std::uint32_t below = 0;
  for (int level = 0; level < 256; ++level) {
    table[level] = pixel::equalized(level, below, step);
    below += histogram[level];
  }
  return table;
}

template <typename Change>
void change_pixels(std::uint8_t* image, std::int64_t pixels, Change change) {
  for (std::uint8_t* end = image + 3 * pixels; image < end; image += 3) {
    const pixel::Rgb after = change(pixel::Rgb{image[0], image[1], image[2]});
    image[0] = after.red, image[1] = after.green, image[2] = after.blue;
  }
}

}  // namespace

void check_image_op_shape(const char* who, std::int64_t height, std::int64_t width, std::int64_t channels) {
  if (channels != 1 && channels != 3)
    throw std::invalid_argument(fmt::format("{}: images of {} channels, expected 1 or 3", who, channels));
  if (std::min(height, width) < 1 || std::max(height, width) > kMostImageOpExtent)
    throw std::invalid_argument(fmt::format("{}: images of {}x{}, expected 1 to {} rows and columns", who,
                                            width, height, kMostImageOpExtent));
}

ImageOps::ImageOps(std::int64_t height, std::int64_t width, std::int64_t channels)
    : height_(static_cast<int>(height)),
      width_(static_cast<int>(width)),
      channels_(static_cast<int>(channels)) {
  check_image_op_shape("image operations", height, width, channels);
  before_.resize(static_cast<std::size_t>(height * width * channels));
}

void ImageOps::apply(std::span<const ImageOp> ops, std::uint8_t* image) {
  for (const ImageOp& op : ops) {
    if (op.kind == ImageOpKind::none) return;
    apply(op, image);
  }
}

void ImageOps::apply(const ImageOp& op, std::uint8_t* image) {
  const std::int64_t pixels = std::int64_t{height_} * width_;
  switch (op.kind) {
    case ImageOpKind::affine:
      return move(op, image);
    case ImageOpKind::sharpness:
      return sharpen(op.value, image);
    case ImageOpKind::saturation:
      if (channels_ == 3)
        change_pixels(image, pixels, [&](pixel::Rgb from) { return pixel::saturated(from, op.value); });
      return;
    case ImageOpKind::hue:
      if (channels_ == 3)
        change_pixels(image, pixels,
                      [turn = static_cast<int>(op.value)](auto from) { return hue_turned(from, turn); });
      return;
    default:
      return change_levels(op, image);
  }
}

void ImageOps::change_levels(const ImageOp& op, std::uint8_t* image) {
  const std::int64_t pixels = std::int64_t{height_} * width_;
  int mean = 0;
  if (op.kind == ImageOpKind::contrast)
    mean = pixel::mean_level(sum_of_grey(image, pixels, channels_), static_cast<std::uint64_t>(pixels));
  for (int c = 0; c < channels_; ++c) {
    Table table{};
    Histogram histogram{};
    if (op.kind == ImageOpKind::equalize || op.kind == ImageOpKind::autocontrast)
      histogram = histogram_of(image + c, pixels, channels_);
    if (op.kind == ImageOpKind::equalize) {
      table = equalizing_table(histogram, pixels);
    } else {
      const pixel::Range range = op.kind == ImageOpKind::autocontrast ? range_of(histogram) : pixel::Range{};
      for (int level = 0; level < 256; ++level) table[level] = pixel::new_level(op, level, mean, range);
    }
    for (std::int64_t i = 0; i < pixels; ++i) image[i * channels_ + c] = table[image[i * channels_ + c]];
  }
}

void ImageOps::move(const ImageOp& op, std::uint8_t* image) {
  std::copy_n(image, before_.size(), before_.data());
  for (int y = 0; y < height_; ++y)
    for (int x = 0; x < width_; ++x, image += channels_) {
      const pixel::Place from = pixel::mapped(op.matrix, x, y);
      const bool inside = from.x >= 0 && from.x < width_ && from.y >= 0 && from.y < height_;
      const std::uint8_t* pixel =
          before_.data() + (std::int64_t{from.y} * width_ + from.x) * channels_ * (inside ? 1 : 0);
      for (int c = 0; c < channels_; ++c) image[c] = inside ? pixel[c] : std::uint8_t{0};
    }
}

// Sharpens all pixels except those at the border, where neighbours are missing.
void ImageOps::sharpen(float factor, std::uint8_t* image) {
  std::copy_n(image, before_.size(), before_.data());
  const int pitch = width_ * channels_;
  for (int y = 1; y + 1 < height_; ++y) {
    const std::uint8_t* row = before_.data() + std::int64_t{y} * pitch;
    for (int i = channels_; i < pitch - channels_; ++i) {
      const auto three = [&](const std::uint8_t* at) { return at[-channels_] + at[0] + at[channels_]; };
      const int sum = three(row + i - pitch) + three(row + i) + three(row + i + pitch) + 4 * row[i];
      image[std::int64_t{y} * pitch + i] = pixel::blend(pixel::smooth(sum), row[i], factor);
    }
  }
}

}  // namespace convoy::kernels
