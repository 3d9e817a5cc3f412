// How one stored image becomes one image of a batch. The host draws and fills it; host and device
// apply it with the same bits. Plain data, copied to the device as bytes.
//
// A sample has a region: the part of the image that may be read (a random resized crop reads
// nothing outside its window). Of the region only a cut is stored in the batch's bytes: the pixels
// that the resampling needs. With JPEG's scaled decoding "the image" means the reduced image
// throughout.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/device/image_op.h"

namespace convoy::kernels {

// One axis of the resampling. Output o, before mirroring, has its centre at
//   start + (skipped + o + 0.5) * scale
// in pixels of the region, where pixel i covers i to i + 1.
struct AxisMap {
  double start = 0, scale = 1;  // scale: region pixels an output pixel
  std::int32_t skipped = 0;     // outputs of the resized region before the first wanted one (a centre crop)
  std::int32_t extent = 0;      // of the region: taps are clamped to pixels 0 to extent
  std::int32_t first = 0;       // region pixel that the cut starts with
  std::int32_t size = 0;        // pixels of the cut; 0 if no output has a pixel
  std::int32_t begin = 0, end = 0;  // outputs, before mirroring, that have pixels; the others are padding
  bool operator==(const AxisMap&) const = default;
};

// In output pixels, after mirroring; may reach beyond the output. Empty if height or width is 0.
struct ErasedRectangle {
  std::int32_t y = 0, x = 0, height = 0, width = 0;
  bool operator==(const ErasedRectangle&) const = default;
};

inline constexpr int kMostErasedRectangles = 2;  // cutout and random erasing
inline constexpr int kMostImageOps = 8;          // four of colour jitter and those of RandAugment

struct SampleTransform {
  std::int64_t offset = 0;  // byte of the cut's first pixel: region pixel (rows.first, columns.first)
  std::int32_t pitch = 0;   // pixels from one row of the cut to the next; at least columns.size
  std::int32_t flip = 0;    // 1: mirrored left to right after resampling
  AxisMap rows, columns;
  ErasedRectangle erased[kMostErasedRectangles];  // 0 (the mean colour) after normalisation
  ImageOp ops[kMostImageOps];                     // applied in this order
  bool operator==(const SampleTransform&) const = default;
};
static_assert(std::is_trivially_copyable_v<SampleTransform> && std::is_standard_layout_v<SampleTransform>);
static_assert(sizeof(SampleTransform) % 16 == 0);  // an array of them keeps the alignment of a vector load

}  // namespace convoy::kernels
