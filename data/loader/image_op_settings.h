// Random operations on the pixels of a training image, after it was cut, resized and mirrored:
// colour jitter as torchvision's ColorJitter draws it, TrivialAugment (wide; Müller, Hutter, ICCV
// 2021) and RandAugment (Cubuk et al., NeurIPS 2020) with the operations and magnitudes that
// torchvision has.
#pragma once

#include <cstdint>
#include <span>

#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// A factor is uniform in 1 - x to 1 + x, but not below 0; the hue turns by -x to x of a whole turn.
// The order is random.
struct ColorJitter {
  float brightness = 0, contrast = 0, saturation = 0, hue = 0;  // 0: not changed; hue at most 0.5
  int count() const { return (brightness > 0) + (contrast > 0) + (saturation > 0) + (hue > 0); }
};

enum class AutoAugment : std::uint8_t { none, trivial, rand };

struct ImageOpSettings {
  ColorJitter jitter;  // comes before auto_augment
  AutoAugment auto_augment = AutoAugment::none;
  int rand_operations = 2;  // of RandAugment, one after the other
  int rand_magnitude = 9;   // 0 to 30

  // The most operations that an image gets; 0 if there is nothing to draw.
  int most() const;
  // Throws std::runtime_error, naming the setting, unless they hold for images of this shape.
  void check(ImageShape output) const;
};

// Fills `ops` with what (seed, epoch, sample) alone decide for an image of this shape; the rest of
// `ops` is of kind none. `settings` must have passed check(output).
void draw_image_ops(const ImageOpSettings& settings, ImageShape output, std::uint64_t seed,
                    std::int64_t epoch, std::int64_t sample,
                    std::span<kernels::ImageOp, kernels::kMostImageOps> ops);

// The operations of TrivialAugment and RandAugment, in torchvision's order.
enum class AugmentOp : std::uint8_t {
  identity,
  shear_x,  // output pixel (x, y) is input pixel (x + magnitude y, y)
  shear_y,
  translate_x,  // by whole pixels, to the right
  translate_y,
  rotate,      // degrees, counter-clockwise about the centre
  brightness,  // and the next three: the factor is 1 + magnitude
  color,
  contrast,
  sharpness,
  posterize,  // magnitude: the bits that are kept
  solarize,   // magnitude: the level from which on levels are inverted
  autocontrast,
  equalize
};
inline constexpr int kAugmentOps = 14;
inline constexpr int kMagnitudes = 31;

// The magnitude of a bin (0 to 30), before its random sign; `signed_magnitude` says whether it gets
// one.
double magnitude_of(AutoAugment policy, AugmentOp op, int bin, ImageShape shape);
bool signed_magnitude(AugmentOp op);
// Kind none where nothing would change.
kernels::ImageOp image_op(AugmentOp op, double magnitude, ImageShape shape);
// turn: of the whole circle, -0.5 to 0.5.
kernels::ImageOp hue_op(double turn);

}  // namespace convoy::data
