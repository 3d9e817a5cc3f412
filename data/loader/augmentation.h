// Random changes to training images, in two halves: drawing the parameters of one sample, which depends on
// (seed, epoch, sample) alone, and applying them. The halves are apart so that a GPU can apply what the host
// drew.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/image/resample.h"
#include "data/image_set.h"

namespace convoy::data {

struct Augmentation {
  // Of the images that come out; 0: as stored. Evaluation, and training without a random crop, take the
  // centre window of the output's aspect and centre_fraction of the largest possible extent and resize it:
  // 0.875 with stored images of 256 and an output of 224 is the usual evaluation on ImageNet.
  int height = 0, width = 0;
  float centre_fraction = 1;

  // A window of the output's size anywhere in the image with `padding` pixels around it.
  bool random_crop = false;
  int padding = 4;
  // Inception's crop: a window of an area and an aspect drawn from these ranges, resized to the output.
  // Excludes random_crop.
  bool random_resized_crop = false;
  float min_area = 0.08f, max_area = 1, min_aspect = 3.0f / 4, max_aspect = 4.0f / 3;

  bool flip = false;    // mirrored left to right with probability 1/2
  bool cutout = false;  // a square anywhere (cut off at the border) is blanked: DeVries and Taylor 2017
  int cutout_size = 8;

  bool normalise = true;  // (x / 255 - mean) / std; else x / 255

  // The output's shape for stored images of that shape. Throws std::runtime_error where the settings cannot
  // hold for it.
  ImageShape output_shape(ImageShape stored) const;
};

// Reads "crop:4,flip,cutout:8", "resized-crop,flip" or "none"; throws std::runtime_error naming the word that
// it does not know and those that it does.
Augmentation parse_augmentation(std::string_view text);

// What to do to one sample; plain integers that can be copied to a device. Outside of the source, and inside
// of the cutout square, the output is 0 after normalisation (the mean colour).
struct AugmentationParameters {
  Window window;          // of the source; may reach beyond it only where its size is the output's
  std::int32_t flip = 0;  // 1: mirrored after cutting
  std::int32_t cutout_x = 0, cutout_y = 0, cutout_size = 0;  // in output pixels; top left may be negative
  bool operator==(const AugmentationParameters&) const = default;
};

// `augmentation` must have passed output_shape(stored).
AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample);

// How the float images lie in memory: [C, H, W] or [H, W, C].
enum class ImageLayout : std::uint8_t { row_major, channels_last };

// Applies parameters on the host. One a thread: it keeps scratch memory, and allocates nothing after
// construction.
class Augmenter {
 public:
  // mean, std: per channel on the scale 0..1.
  Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
            std::span<const float> std, ImageLayout layout);
  ImageShape output_shape() const { return output_; }
  // image: [H, W, C] of the stored shape; output: output_shape().bytes() floats.
  void apply(const std::uint8_t* image, const AugmentationParameters& parameters, float* output);

 private:
  void copy_window(const std::uint8_t* image, const AugmentationParameters& parameters, float* output) const;
  void resample_window(const std::uint8_t* image, const AugmentationParameters& parameters, float* output);
  void blank(float* output, std::int64_t y, std::int64_t first, std::int64_t last) const;
  void cut_out(const AugmentationParameters& parameters, float* output) const;

  ImageShape stored_, output_;
  ImageLayout layout_;
  std::int64_t pixel_stride_, channel_stride_;  // of the output, in floats
  std::vector<float> scale_, bias_;             // normalised = value * scale + bias for a value of 0..255
  std::vector<float> table_;                    // [C][256] of the same
  Resampler resampler_;
};

}  // namespace convoy::data
