// Random changes to training images, in three steps. draw() chooses the parameters for one sample
// at random. They depend only on the settings, the size of its image and (seed, epoch, sample).
// place() computes which pixels must be read and which transform turns them into the output. The
// transform is applied by the device, or by Augmenter on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/image/pixel_rectangle.h"
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
  // Used for evaluation, and for training without a random crop: the image is resized until its
  // shorter side has this many pixels, and the centre is taken, as with torchvision's Resize and
  // CenterCrop. 0: the smallest size at which the image covers the output.
  int resize_short = 0;

  // Pads the image by `padding` pixels on each side and takes a window of the output's size at a
  // random position. If the padded image is smaller than the window, it gets a random position in
  // the window.
  bool random_crop = false;
  int padding = 4;
  // Inception's crop as in torchvision's RandomResizedCrop. Takes a window of random area and
  // aspect ratio (width to height) and resizes it to the output. The area is a fraction of the
  // image's. It cannot be combined with random_crop.
  bool random_resized_crop = false;
  float min_area = 0.08f, max_area = 1, min_aspect = 3.0f / 4, max_aspect = 4.0f / 3;

  bool flip = false;  // mirrors left to right with probability 1/2
  // Blanks a square at a random position. Parts beyond the border are ignored (DeVries, Taylor
  // 2017).
  bool cutout = false;
  int cutout_size = 8;
  // Probability of random erasing (Zhong et al. 2017, arXiv 1708.04896) as in torchvision's
  // RandomErasing. It blanks a rectangle of random area and aspect ratio (height to width) inside
  // the output. The area is a fraction of the output's.
  float erasing = 0;
  float min_erased_area = 0.02f, max_erased_area = 0.33f;
  float min_erased_aspect = 0.3f, max_erased_aspect = 3.3f;

  // Operations on the pixels after cropping, resizing and mirroring: colour jitter, TrivialAugment,
  // RandAugment.
  ImageOpSettings image_ops;

  bool normalise = true;  // true: (x / 255 - mean) / std; false: x / 255

  // Returns the shape of the output for stored images of the given shape. Height and width of
  // `stored` are 0 if the images differ in size. Throws std::runtime_error if the settings do not
  // fit the images.
  ImageShape output_shape(ImageShape stored) const;
};

// Reads "crop:4,flip,cutout:8", "resized-crop,flip,erase:0.25" or "none". The std::runtime_error
// for an unknown word names the word and the known ones.
Augmentation parse_augmentation(std::string_view text);

// The random changes to one sample. After normalisation, padding and erased rectangles are 0, which
// is the mean colour.
struct AugmentationParameters {
  // The window in pixels of the stored image. It may reach beyond the image only if it is not
  // resized.
  PixelRectangle window;
  std::int32_t resized_height = 0, resized_width = 0;  // size that the window is resized to
  std::int32_t top = 0, left = 0;                      // position of the output in the resized window
  std::int32_t flip = 0;                               // 1: the output is mirrored left to right
  kernels::ErasedRectangle erased[kernels::kMostErasedRectangles];
  kernels::ImageOp ops[kernels::kMostImageOps];
  bool operator==(const AugmentationParameters&) const = default;
  // Returns the number of source pixels per output pixel, the smaller value of both axes. The
  // decoder may reduce the image by at most this factor.
  double scale() const;
};

// Chooses the changes to one sample. `stored` is the shape of its image. Call
// augmentation.output_shape() once before, because it checks the settings.
AugmentationParameters draw(const Augmentation& augmentation, ImageShape stored, std::uint64_t seed,
                            std::int64_t epoch, std::int64_t sample);

struct PlacedSample {
  // The rectangle of pixels to read from the image after the decoder has reduced it. The rectangle
  // may be empty.
  PixelRectangle cut;
  // Computes the output from the pixels of `cut`, stored as [cut.height, cut.width, C].
  kernels::SampleTransform transform;
};
// Computes which pixels of a sample must be read and how they become the output. `reduction` is the
// factor by which the decoder reduces the image: at most parameters.scale(), or 1 for no reduction.
PlacedSample place(const AugmentationParameters& parameters, ImageShape stored, ImageShape output,
                   int reduction = 1);
// Like place(), for an image that lies completely in memory, with its first byte at `offset`.
kernels::SampleTransform place_in_whole(const AugmentationParameters& parameters, ImageShape stored,
                                        ImageShape output, std::int64_t offset);

// Applies transforms on the host. Use one object per thread, because it holds scratch memory. If
// all images have the same size, only the constructor allocates memory. Otherwise apply() allocates
// whenever an image needs more than all earlier ones.
class Augmenter {
 public:
  // `stored` is the shape of the images; its height and width are 0 if the images differ in size.
  // `mean` and `std` have one value per channel, for pixel values from 0 to 1.
  Augmenter(const Augmentation& augmentation, ImageShape stored, std::span<const float> mean,
            std::span<const float> std, ImageLayout layout, VectorLevel level = best_vector_level());
  ImageShape output_shape() const { return output_; }
  // Applies a transform to the pixels of a sample (PlacedSample::cut) at bytes[transform.offset].
  // Writes output_shape().bytes() floats to `to`.
  void apply(const std::uint8_t* bytes, const kernels::SampleTransform& transform, float* to);
  // Does only the first half of apply(): writes the resampled and mirrored image as uint8 [H, W,
  // C].
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
