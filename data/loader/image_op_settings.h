// Random operations on the pixels of a training image, after it was cropped, resized and mirrored:
// colour jitter as torchvision's ColorJitter draws it, TrivialAugment (wide; Müller, Hutter, ICCV
// 2021) and RandAugment (Cubuk et al., NeurIPS 2020) with torchvision's operations and magnitudes.
#pragma once

#include <cstdint>
#include <span>

#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// Strengths x of colour jitter. A factor is uniform in 1 - x to 1 + x, but not below 0; the hue
// turns by -x to x of a whole turn. The four changes come in random order.
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

  // Returns the largest number of operations that one image gets; 0 if no operation is set.
  int most() const;
  // Throws std::runtime_error that names the setting unless the settings are valid for images of
  // this shape.
  void check(ImageShape output) const;
};

// Fills `ops` with the operations that are drawn for an image of this shape. They depend on the
// settings and on (seed, epoch, sample) alone. Unused entries have the kind none. `settings` must
// have passed check(output).
void draw_image_ops(const ImageOpSettings& settings, ImageShape output, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t sample,
                    std::span<kernels::ImageOp, kernels::kMostImageOps> ops);

// The operations of TrivialAugment and RandAugment, in torchvision's order.
enum class AugmentOp : std::uint8_t {
  identity,
  shear_x,  // output pixel (x, y) is input pixel (x + magnitude y, y)
  shear_y,
  translate_x,  // moves right by `magnitude` whole pixels
  translate_y,
  rotate,      // by `magnitude` degrees, counter-clockwise about the centre
  brightness,  // the factor is 1 + magnitude, as in the next three operations
  color,
  contrast,
  sharpness,
  posterize,  // magnitude: number of bits that are kept of each value
  solarize,   // magnitude: values from this one on are inverted
  autocontrast,
  equalize
};
inline constexpr int kAugmentOps = 14;
inline constexpr int kMagnitudes = 31;

// Returns the magnitude of an operation for a bin (0 to 30), without a sign. signed_magnitude()
// returns whether the magnitude of the operation gets a random sign.
double magnitude_of(AutoAugment policy, AugmentOp op, int bin, ImageShape shape);
bool signed_magnitude(AugmentOp op);
// Returns the operation on the pixels that an AugmentOp of this magnitude stands for. Its kind is
// none if it would change nothing.
kernels::ImageOp image_op(AugmentOp op, double magnitude, ImageShape shape);
// Returns the operation that changes the hue by `turn`, a share of a whole turn from -0.5 to 0.5.
kernels::ImageOp hue_op(double turn);

}  // namespace convoy::data
