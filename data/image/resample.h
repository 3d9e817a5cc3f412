// Cuts a window out of an image and brings it to another size, with the bits of Pillow's
// Image.crop(window).resize(size, BILINEAR): kernels/device/bilinear.h.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/resample_rows.h"
#include "data/image/window.h"
#include "data/image_set.h"
#include "kernels/device/sample_transform.h"

namespace convoy::data {

// The outputs `begin` to `begin + size` of an axis along which `extent` pixels become `resized`.
kernels::AxisMap resized_axis(std::int64_t extent, std::int64_t resized, std::int64_t begin,
                              std::int64_t size);
// Sets first and size of an axis, the pixels that its outputs begin to end need, from the rest of
// it.
void set_cut(kernels::AxisMap& axis);

// Keeps its buffers from call to call: one a thread.
class Resampler {
 public:
  explicit Resampler(VectorLevel level = best_vector_level()) : rows_(&resample_rows(level)) {}

  // Makes room for such images, so that resample() allocates nothing. Without it, it allocates
  // nothing once it has seen the largest.
  void reserve(ImageShape stored, ImageShape output);
  // The resampled and mirrored image, u8 [shape.height, shape.width, shape.channels], from the cut
  // at transform.offset of `bytes`. `fill`, a value a channel, goes to outputs that have no pixel
  // (padding).
  void resample(const std::uint8_t* bytes, const kernels::SampleTransform& transform, ImageShape shape,
                const std::uint8_t* fill, std::uint8_t* to);
  // The window, which must lie inside the image, as u8 [height, width, C].
  void resize(const std::uint8_t* image, ImageShape shape, Window window, std::int64_t height,
              std::int64_t width, std::uint8_t* to);

 private:
  // Rows of pixels in memory.
  struct Rows {
    const std::uint8_t* data;
    std::int64_t pitch;  // bytes
  };
  Rows pass_horizontally(Rows cut, const kernels::SampleTransform& transform, std::int64_t channels,
                         std::uint8_t* to, std::int64_t pitch);
  void pass_vertically(Rows from, const kernels::AxisMap& axis, std::int64_t bytes, std::uint8_t* to,
                       std::int64_t pitch);

  const ResampleRows* rows_;
  BilinearFilter columns_filter_, rows_filter_;
  std::vector<std::uint8_t> narrowed_;  // the cut's rows at the output's width
  std::vector<std::uint8_t> scratch_;
};

}  // namespace convoy::data
