// Says how one stored image becomes one image of a batch. The host chooses the values, some of them
// at random. Host and device apply them with the same bits. Plain data, copied to the device as
// bytes.
//
// A sample has a region: the part of the image that may be read. For example, a random resized crop
// reads nothing outside its window. A batch holds the bytes of only a part of the region, called
// the cut: the pixels that resampling needs. If JPEG's scaled decoding is used, "the image" always
// means the reduced image.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/image_op.h"

namespace convoy::kernels {

// One axis of the resampling. Output o, before mirroring, has its centre at
//   start + (skipped + o + 0.5) * scale
// in pixels of the region, where pixel i covers the interval from i to i + 1.
struct AxisMap {
  double start = 0, scale = 1;  // scale: pixels of the region per output pixel
  // The number of outputs of the resized region that are left out at its beginning, as in a centre
  // crop.
  std::int32_t skipped = 0;
  std::int32_t extent = 0;  // the region's size in pixels; positions beyond it are clamped
  std::int32_t first = 0;   // the position of the cut's first pixel in the region
  std::int32_t size = 0;    // the cut's size in pixels; 0 if all outputs are padding
  // The range of outputs, before mirroring, that are pixels of the image. The others are padding.
  std::int32_t begin = 0, end = 0;
  bool operator==(const AxisMap&) const = default;
};

// A rectangle in output pixels, after mirroring. It may reach beyond the output, and is empty if
// its height or width is 0.
struct ErasedRectangle {
  std::int32_t y = 0, x = 0, height = 0, width = 0;
  bool operator==(const ErasedRectangle&) const = default;
};

inline constexpr int kMostErasedRectangles = 2;  // one for cutout, one for random erasing
inline constexpr int kMostImageOps = 8;          // four for colour jitter, the rest for RandAugment

struct SampleTransform {
  // The cut's first byte in the bytes of the batch.
  std::int64_t offset = 0;
  std::int32_t pitch = 0;  // pixels from one row of the cut to the next, at least columns.size
  std::int32_t flip = 0;   // 1: the image is mirrored left to right after resampling
  AxisMap rows, columns;
  // Output pixels in these areas are 0 after normalisation, which is the mean colour.
  ErasedRectangle erased[kMostErasedRectangles];
  ImageOp ops[kMostImageOps];  // applied in this order, up to the first of kind none
  bool operator==(const SampleTransform&) const = default;
};
static_assert(std::is_trivially_copyable_v<SampleTransform> && std::is_standard_layout_v<SampleTransform>);

}  // namespace convoy::kernels
