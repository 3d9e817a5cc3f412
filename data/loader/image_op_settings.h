// Random operations on the pixels of a training image, after it was cropped, resized and mirrored:
// colour jitter as in torchvision's ColorJitter, TrivialAugment (wide; Müller, Hutter, ICCV
// 2021) and RandAugment (Cubuk et al., NeurIPS 2020) with torchvision's operations and magnitudes.
#pragma once

#include <cstdint>
#include <span>

#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// Strengths of colour jitter. With strength x, a factor is uniform in 1 - x to 1 + x, but at least
// 0, and the hue is rotated by -x to x full turns. The four changes are applied in random order.
struct ColorJitter {
  // A strength of 0 leaves the property unchanged. The strength of hue is at most 0.5.
  float brightness = 0, contrast = 0, saturation = 0, hue = 0;
  int count() const { return (brightness > 0) + (contrast > 0) + (saturation > 0) + (hue > 0); }
};

enum class AutoAugment : std::uint8_t { none, trivial, rand };

struct ImageOpSettings {
  ColorJitter jitter;  // applied before auto_augment
  AutoAugment auto_augment = AutoAugment::none;
  int rand_operations = 2;  // number of operations of RandAugment
  int rand_magnitude = 9;   // magnitude of RandAugment, 0 to 30

  // Returns the largest number of operations for one image. It is 0 if all operations are off.
  int most() const;
  // Throws std::runtime_error that names a setting if the setting is not valid for images of this
  // shape.
  void check(ImageShape output) const;
};

// Fills `ops` with the operations for one image. They depend only on the settings, the shape and
// (seed, epoch, sample). Unused entries have the kind none. Call settings.check(output) before.
void draw_image_ops(const ImageOpSettings& settings, ImageShape output, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t sample,
                    std::span<kernels::ImageOp, kernels::kMostImageOps> ops);

// The operations of TrivialAugment and RandAugment, in torchvision's order.
enum class AugmentOp : std::uint8_t {
  identity,
  shear_x,  // output pixel (x, y) is input pixel (x + magnitude y, y)
  shear_y,
  translate_x,  // translates to the right by `magnitude` pixels
  translate_y,
  rotate,      // rotates by `magnitude` degrees, counter-clockwise about the centre
  brightness,  // changed by the factor 1 + magnitude, and so are the next three properties
  color,
  contrast,
  sharpness,
  posterize,  // keeps the `magnitude` highest bits of each value
  solarize,   // inverts values that are at least `magnitude`
  autocontrast,
  equalize
};
inline constexpr int kAugmentOps = 14;
inline constexpr int kMagnitudes = 31;

// Returns the magnitude of an operation for a bin from 0 to 30. It is not negative. Operations for
// which signed_magnitude() is true are used with the magnitude or its negative, at random.
double magnitude_of(AutoAugment policy, AugmentOp op, int bin, ImageShape shape);
bool signed_magnitude(AugmentOp op);
// Returns the pixel operation for an AugmentOp of this magnitude. Its kind is none if the AugmentOp
// would change nothing.
kernels::ImageOp image_op(AugmentOp op, double magnitude, ImageShape shape);
// Returns the operation that rotates the hue by `turn` full turns, from -0.5 to 0.5.
kernels::ImageOp hue_op(double turn);

}  // namespace convoy::data
