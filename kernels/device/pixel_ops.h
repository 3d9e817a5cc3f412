// The formulas of image operations (image_op.h) on single pixels, for host and device. They give
// the results of Pillow (ImageEnhance, ImageOps, Image.convert), rounding included. No product may
// be fused with a sum, so compile host code that includes this header with -ffp-contract=off.
#pragma once

#include <cstdint>

#include "kernels/device/image_op.h"
#include "kernels/device/philox.h"

namespace convoy::kernels::pixel {

// Returns a * b. No compiler fuses this product with an addition, which would change the result.
CONVOY_HOST_DEVICE inline float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
CONVOY_HOST_DEVICE inline double product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

CONVOY_HOST_DEVICE inline std::uint8_t clipped(float value) {
  return static_cast<std::uint8_t>(value <= 0 ? 0.0f : value >= 255 ? 255.0f : value);
}

// Computes Pillow's Image.blend: the result is `degenerate` at factor 0 and `level` at factor 1,
// and in between and beyond it is linear in `factor`.
CONVOY_HOST_DEVICE inline std::uint8_t blend(int degenerate, int level, float factor) {
  return clipped(static_cast<float>(degenerate) + product(factor, static_cast<float>(level - degenerate)));
}

// Computes Pillow's Image.convert("L").
CONVOY_HOST_DEVICE inline int grey(int red, int green, int blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

// Returns the mean of `count` levels whose sum is `sum`, rounded half up.
CONVOY_HOST_DEVICE inline int mean_level(std::uint64_t sum, std::uint64_t count) {
  return static_cast<int>((2 * sum + count) / (2 * count));
}

// Computes Pillow's ImageFilter.SMOOTH. `nine_and_four` is the sum of a pixel and its eight
// neighbours plus four times the pixel. The result is this sum divided by 13 and rounded. The
// quotient never lies halfway between two integers, because 13 is odd.
CONVOY_HOST_DEVICE inline int smooth(int nine_and_four) { return (2 * nine_and_four + 13) / 26; }

// Computes Pillow's ImageOps.autocontrast for a channel whose levels go from `low` to `high`.
CONVOY_HOST_DEVICE inline std::uint8_t stretched(int level, int low, int high) {
  if (high <= low) return static_cast<std::uint8_t>(level);
  const double scale = 255.0 / (high - low);
  const auto stretched = static_cast<int>(product(level, scale) + product(-low, scale));
  return static_cast<std::uint8_t>(stretched < 0 ? 0 : stretched > 255 ? 255 : stretched);
}

// Computes Pillow's ImageOps.equalize. `below` is the number of the channel's pixels whose level is
// lower than `level`. `step` is 1/255 of the number of pixels below the channel's highest level.
CONVOY_HOST_DEVICE inline std::uint8_t equalized(int level, std::uint32_t below, std::uint32_t step) {
  if (step == 0) return static_cast<std::uint8_t>(level);
  const std::uint32_t equalized = (step / 2 + below) / step;
  return static_cast<std::uint8_t>(equalized > 255 ? 255 : equalized);
}

// The lowest and the highest level in a channel.
struct Range {
  int low = 255, high = 0;
};

// Returns the level to which an operation changes `level`. Supports the operations that map equal
// levels of a channel to equal levels, except equalize.
CONVOY_HOST_DEVICE inline std::uint8_t new_level(const ImageOp& op, int level, int mean, Range range) {
  switch (op.kind) {
    case ImageOpKind::brightness:
      return blend(0, level, op.value);
    case ImageOpKind::contrast:
      return blend(mean, level, op.value);
    case ImageOpKind::posterize:
      return static_cast<std::uint8_t>(level & static_cast<int>(op.value));
    case ImageOpKind::solarize:
      return static_cast<std::uint8_t>(static_cast<float>(level) < op.value ? level : 255 - level);
    case ImageOpKind::autocontrast:
      return stretched(level, range.low, range.high);
    default:
      return static_cast<std::uint8_t>(level);
  }
}

struct Rgb {
  std::uint8_t red, green, blue;
};

CONVOY_HOST_DEVICE inline Rgb saturated(Rgb from, float factor) {
  const int level = grey(from.red, from.green, from.blue);
  return {blend(level, from.red, factor), blend(level, from.green, factor), blend(level, from.blue, factor)};
}

// Converts to HSV as Pillow's Image.convert does, adds `turn` to the hue, and converts back. Hue,
// saturation and value are rounded to bytes in between.
CONVOY_HOST_DEVICE inline Rgb hue_turned(Rgb from, int turn) {
  const int r = from.red, g = from.green, b = from.blue;
  const int most = r > g ? (r > b ? r : b) : (g > b ? g : b);
  const int least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  if (most == least) return from;
  const auto chroma = static_cast<float>(most - least), value = static_cast<float>(most);
  const float red = static_cast<float>(most - r) / chroma, green = static_cast<float>(most - g) / chroma,
              blue = static_cast<float>(most - b) / chroma;
  const float sector = r == most   ? blue - green
                       : g == most ? static_cast<float>(2.0 + red - blue)
                                   : static_cast<float>(4.0 + green - red);
  const double turns = sector / 6.0 + 1.0;  // between 5/6 and 2
  const auto hue = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  const int saturation_byte = static_cast<int>(chroma / value * 255.0);
  const int hue_byte = (static_cast<int>(hue * 255.0) + turn) & 255;
  const auto v = static_cast<std::uint8_t>(most);
  if (saturation_byte == 0) return {v, v, v};

  const double sectors = hue_byte * 6.0 / 255.0;
  const int whole = static_cast<int>(sectors);  // from 0 to 6
  const auto part = static_cast<float>(sectors - whole);
  const auto saturation = static_cast<float>(saturation_byte / 255.0);
  // Rounds half up. For the values below, the result equals that of Python's round().
  const auto rounded = [&](double share) {
    return static_cast<std::uint8_t>(product(static_cast<double>(value), share) + 0.5);
  };
  const std::uint8_t p = rounded(1.0 - static_cast<double>(saturation));
  const std::uint8_t q = rounded(1.0 - static_cast<double>(product(saturation, part)));
  const std::uint8_t t =
      rounded(1.0 - product(static_cast<double>(saturation), 1.0 - static_cast<double>(part)));
  switch (whole) {
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    case 5:
      return {v, p, q};
    default:  // whole is 0 or 6
      return {v, t, p};
  }
}

// The input pixel that an affine operation copies to output pixel (x, y).
struct Place {
  int x, y;
};
CONVOY_HOST_DEVICE inline Place mapped(const std::int32_t (&matrix)[6], int x, int y) {
  // The products and sums may wrap in 32 bits; the final sum fits, so it is right all the same.
  const auto at = [&](int row) {
    const auto sum = static_cast<std::uint32_t>(matrix[row]) * static_cast<std::uint32_t>(x) +
                     static_cast<std::uint32_t>(matrix[row + 1]) * static_cast<std::uint32_t>(y) +
                     static_cast<std::uint32_t>(matrix[row + 2]);
    return static_cast<std::int32_t>(sum) >> 16;
  };
  return {at(0), at(3)};
}

}  // namespace convoy::kernels::pixel
