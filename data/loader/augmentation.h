// Random changes to training images, in three steps. draw() draws the parameters of one sample,
// which depend on the settings, the image's size and (seed, epoch, sample) alone. place() computes
// which pixels are read and the transform that makes the output from them. A device applies the
// transform, or Augmenter applies it on the host.
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
  // Height and width of the output in pixels; 0: as stored.
  int height = 0, width = 0;
  // Without a random crop, and for evaluation, the image is resized until its shorter side has this
  // many pixels, and its centre is taken, as torchvision's Resize and CenterCrop do. 0: the
  // smallest size that covers the output.
  int resize_short = 0;

  // Takes a window of the output's size at a random place of the image, which is padded by
  // `padding` pixels on each side. A padded image that is smaller than the window gets a random
  // place in the window.
  bool random_crop = false;
  int padding = 4;
  // Inception's crop as in torchvision's RandomResizedCrop: takes a window whose share of the area
  // and whose aspect (width to height) are drawn from the ranges below, and resizes it to the
  // output. It cannot be combined with random_crop.
  bool random_resized_crop = false;
  float min_area = 0.08f, max_area = 1, min_aspect = 3.0f / 4, max_aspect = 4.0f / 3;

  bool flip = false;  // mirrors left to right with probability 1/2
  // Blanks a square at a random place, clipped at the border (DeVries and Taylor 2017).
  bool cutout = false;
  int cutout_size = 8;
  // Probability of random erasing (Zhong et al. 2017, arXiv 1708.04896) as in torchvision's
  // RandomErasing. It blanks a rectangle inside the output whose share of the area and whose aspect
  // (height to width) are drawn from the ranges below.
  float erasing = 0;
  float min_erased_area = 0.02f, max_erased_area = 0.33f;
  float min_erased_aspect = 0.3f, max_erased_aspect = 3.3f;

  // Operations on the pixels after cropping, resizing and mirroring: colour jitter, TrivialAugment,
  // RandAugment.
  ImageOpSettings image_ops;

  bool normalise = true;  // true: (x / 255 - mean) / std; false: x / 255

  // Returns the output's shape for stored images of this shape, whose height and width are 0 if the
  // images differ in size. Throws std::runtime_error if the settings do not fit the images.
  ImageShape output_shape(ImageShape stored) const;
};

// Reads "crop:4,flip,cutout:8", "resized-crop,flip,erase:0.25" or "none". Throws std::runtime_error
// that names an unknown word and the known words.
Augmentation parse_augmentation(std::string_view text);

// The changes that are drawn for one sample. Outputs outside the image and in erased rectangles are
// 0 after normalisation, which is the mean colour.
struct AugmentationParameters {
  // In pixels of the stored image. Only a window that is not resized may reach beyond the image.
  Window window;
  std::int32_t resized_height = 0, resized_width = 0;  // size that the window is resized to
  std::int32_t top = 0, left = 0;                      // place of the output in the resized window
  std::int32_t flip = 0;                               // 1: the output is mirrored left to right
  kernels::ErasedRectangle erased[kernels::kMostErasedRectangles];
  kernels::ImageOp ops[kernels::kMostImageOps];
  bool operator==(const AugmentationParameters&) const = default;
  // Returns the source pixels per output pixel, the smaller value of both axes. Decoding may reduce
  // the image by at most this factor.
  double scale() const;
};

// Draws the changes of one sample. `stored` is the shape of its image; `augmentation` must have
// passed output_shape() for the shape of the set.
AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample);

struct PlacedSample {
  // The pixels to read from the image, which is reduced to extents of ceil(extent / reduction). The
  // window may be empty.
  Window cut;
  // Makes the output from the pixels of `cut`, which lie in memory as [cut.height, cut.width, C].
  kernels::SampleTransform transform;
};
// Computes which pixels of a sample are read and how they become the output. `reduction` is the
// factor by which the decoder reduces the image, at most parameters.scale(), or 1 if the decoder
// does not reduce it.
PlacedSample place(const AugmentationParameters& parameters, ImageShape stored, ImageShape output,
                   int reduction = 1);
// Does the same as place() for a whole image in memory whose first byte is at `offset`.
kernels::SampleTransform place_in_whole(const AugmentationParameters& parameters, ImageShape stored,
                                        ImageShape output, std::int64_t offset);

// Applies transforms on the host. Use one object per thread, because it keeps scratch memory. If
// the size of the images is known, it allocates memory only when it is constructed; else it may
// allocate until it has seen the largest image.
class Augmenter {
 public:
  // `stored` is the shape of the set's images. Its height and width are 0 if the images differ in
  // size. `mean` and `std` have one value per channel, on the scale 0 to 1.
  Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
            std::span<const float> std, ImageLayout layout, VectorLevel level = best_vector_level());
  ImageShape output_shape() const { return output_; }
  // Reads a sample's pixels (PlacedSample::cut) at transform.offset of `bytes` and writes
  // output_shape().bytes() floats.
  void apply(const std::uint8_t* bytes, const kernels::SampleTransform& transform, float* to);
  // Does the first half of apply(): writes the resampled and mirrored image, uint8 [H, W, C].
  void resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform, std::uint8_t* to);

 private:
  Augmenter(ImageShape stored, ImageShape output, const std::vector<ScaleShift>& factors, ImageLayout layout,
            bool changes_images, VectorLevel level);

  ImageShape output_;
  std::vector<std::uint8_t> fill_;
  Normaliser normaliser_;
  Resampler resampler_;
  std::vector<std::uint8_t> resampled_;
  std::optional<kernels::ImageOps> image_ops_;  // empty if the settings have no such operations
};

}  // namespace convoy::data
