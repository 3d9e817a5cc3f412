// Random changes to training images, in three steps: draw() draws the parameters of one sample,
// which depend on the image's size and on (seed, epoch, sample) alone; place() turns them into the
// pixels to read and the transform that a device applies to them; Augmenter applies it on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/image/resample.h"
#include "data/image_set.h"
#include "data/loader/image_op_settings.h"
#include "data/loader/normaliser.h"
#include "kernels/device/image_ops.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

struct Augmentation {
  // The size of the images that come out; 0: as stored.
  int height = 0, width = 0;
  // Without a random crop, and for evaluation, the centre of the image is taken after its shorter
  // side has been resized to this, as torchvision's Resize and CenterCrop do it; 0: to the least
  // that covers the output.
  int resize_short = 0;

  // A window of the output's size anywhere in the image with `padding` pixels around it. An image
  // that is smaller even so lies anywhere in the window.
  bool random_crop = false;
  int padding = 4;
  // Inception's crop as in torchvision's RandomResizedCrop: a window of an area and an aspect drawn
  // from these ranges, resized to the output. Excludes random_crop.
  bool random_resized_crop = false;
  float min_area = 0.08f, max_area = 1, min_aspect = 3.0f / 4, max_aspect = 4.0f / 3;

  bool flip = false;    // mirrored left to right with probability 1/2
  bool cutout = false;  // a square anywhere (cut off at the border) is blanked: DeVries and Taylor 2017
  int cutout_size = 8;
  // Random erasing (Zhong et al. 2017, arXiv 1708.04896) as in torchvision's RandomErasing: with
  // this probability a rectangle inside the image, of a share of its area and an aspect (height to
  // width) drawn from these ranges, is blanked.
  float erasing = 0;
  float min_erased_area = 0.02f, max_erased_area = 0.33f;
  float min_erased_aspect = 0.3f, max_erased_aspect = 3.3f;

  // Operations on the pixels after all that (colour jitter, TrivialAugment, RandAugment).
  ImageOpSettings image_ops;

  bool normalise = true;  // (x / 255 - mean) / std; else x / 255

  // The output's shape for stored images of that shape, whose height and width are 0 if they
  // differ. Throws std::runtime_error where the settings cannot hold for it.
  ImageShape output_shape(ImageShape stored) const;
};

// Reads "crop:4,flip,cutout:8", "resized-crop,flip,erase:0.25" or "none"; throws std::runtime_error
// naming the word that it does not know and those that it does.
Augmentation parse_augmentation(std::string_view text);

// The drawn changes of one sample, in pixels of its own image. Outputs beyond the image and in the
// erased rectangles are 0 after normalisation (the mean colour).
struct AugmentationParameters {
  Window window;                                       // reaches beyond the image only if it is not resized
  std::int32_t resized_height = 0, resized_width = 0;  // that the window is resized to
  std::int32_t top = 0, left = 0;                      // of the output in the resized window
  std::int32_t flip = 0;                               // 1: mirrored after all that
  kernels::ErasedRectangle erased[kernels::kMostErasedRectangles];
  kernels::ImageOp ops[kernels::kMostImageOps];
  bool operator==(const AugmentationParameters&) const = default;
  // Source pixels an output pixel, the smaller of both axes: how much of it decoding can do.
  double scale() const;
};

// `stored` is the shape of this image; `augmentation` must have passed output_shape() of the set's.
AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample);

struct PlacedSample {
  Window cut;  // the pixels to read, of the image reduced to ceil(extent / reduction); may be empty
  kernels::SampleTransform transform;  // of the cut as [cut.height, cut.width, C]: offset 0, pitch cut.width
};
// reduction: 1 unless the decoder reduces the image, by at most parameters.scale().
PlacedSample place(const AugmentationParameters& parameters, ImageShape stored, ImageShape output,
                   int reduction = 1);
// As place(), of an image that lies in memory as a whole, its first byte at `offset`.
kernels::SampleTransform place_in_whole(const AugmentationParameters& parameters, ImageShape stored,
                                        ImageShape output, std::int64_t offset);

// Applies transforms on the host. One a thread: it keeps scratch memory. It allocates nothing after
// construction if the size of the images is known, and else nothing once it has seen the largest.
class Augmenter {
 public:
  // stored: of the set's images, height and width 0 if they differ. mean, std: per channel on the
  // scale 0..1.
  Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
            std::span<const float> std, ImageLayout layout, VectorLevel level = best_vector_level());
  ImageShape output_shape() const { return output_; }
  // Reads the cut at transform.offset of `bytes` and writes output.bytes() floats.
  void apply(const std::uint8_t* bytes, const kernels::SampleTransform& transform, float* to);
  // The first half of apply(): the resampled and mirrored image, u8 [H, W, C].
  void resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform, std::uint8_t* to);

 private:
  Augmenter(ImageShape stored, ImageShape output, const std::vector<ScaleShift>& factors, ImageLayout layout,
            bool changes_images, VectorLevel level);

  ImageShape output_;
  std::vector<std::uint8_t> fill_;
  Normaliser normaliser_;
  Resampler resampler_;
  std::vector<std::uint8_t> resampled_;
  std::optional<kernels::ImageOps> image_ops_;  // empty if the settings have none
};

}  // namespace convoy::data
