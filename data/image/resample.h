// Resizes images, or cuts windows out and resizes them. The result is identical to Pillow's
// Image.crop(window).resize(size, BILINEAR). kernels/device/bilinear.h defines the arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/resample_rows.h"
#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// Returns the mapping along one axis that resizes `extent` pixels to `resized` pixels and keeps
// `size` of them, starting at `begin`.
kernels::AxisMap resized_axis(std::int64_t extent, std::int64_t resized, std::int64_t begin,
                              std::int64_t size);
// Sets axis.first and axis.size: the range of source pixels that the outputs axis.begin to axis.end
// depend on.
void set_cut(kernels::AxisMap& axis);
// Returns pixels / 2, rounded to the even neighbour if it ends in .5. torchvision's CenterCrop
// leaves so many of the surplus pixels out at the beginning of an axis.
std::int64_t half_rounded_to_even(std::int64_t pixels);

// Resamples images and keeps its buffers between calls. Use one per thread.
class Resampler {
 public:
  explicit Resampler(VectorLevel level = best_vector_level()) : rows_(&resample_rows(level)) {}

  // Allocates the buffers for images of these shapes. Without this call, resample() allocates
  // memory whenever an image needs more than all earlier ones.
  void reserve(ImageShape stored, ImageShape output);
  // Resamples an image, mirrors it if the transform says so, and writes it to `to` as uint8
  // [shape.height, shape.width, shape.channels]. The source pixels begin at
  // bytes[transform.offset]. Outputs without a source pixel (padding) get `fill`, one value per
  // channel.
  void resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform, ImageShape shape,
                const std::uint8_t* fill, std::uint8_t* to);
  // Resizes an image to uint8 [rows.end, columns.end, C]. The axes begin at 0. To resize a window,
  // pass the address of its first pixel, and axes of the window's extents.
  void resize(const std::uint8_t* image, ImageShape shape, const kernels::AxisMap& rows,
              const kernels::AxisMap& columns, std::uint8_t* to);

 private:
  // Rows of pixels in memory.
  struct Rows {
    const std::uint8_t* data;
    std::int64_t pitch;  // bytes between the starts of two rows
  };
  Rows pass_horizontally(Rows cut, const kernels::SampleTransform& transform, std::int64_t channels,
                         std::uint8_t* to, std::int64_t pitch);
  void pass_vertically(Rows from, const kernels::AxisMap& axis, std::int64_t bytes, std::uint8_t* to,
                       std::int64_t pitch);

  const ResampleRows* rows_;
  BilinearFilter columns_filter_, rows_filter_;
  std::vector<std::uint8_t> narrowed_;  // source rows after resampling to the output's width
  std::vector<std::uint8_t> scratch_;
};

}  // namespace convoy::data
