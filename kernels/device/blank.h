// Tells which pixels of a transformed sample are 0 (the mean colour), whatever the image shows.
#pragma once

#include <cstdint>

#include "kernels/device/philox.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels {

// Returns whether an output pixel is in an area that the transform erases, or in padding. If the
// transform has image operations, padding does not count, because they may have moved it. `width`
// is the width of the output image.
CONVOY_HOST_DEVICE inline bool is_blank(const SampleTransform& transform, std::int32_t y, std::int32_t x,
                                        std::int32_t width) {
  for (const ErasedRectangle& erased : transform.erased)
    if (y >= erased.y && y - erased.y < erased.height && x >= erased.x && x - erased.x < erased.width)
      return true;
  if (transform.ops[0].kind != ImageOpKind::none) return false;
  const std::int32_t column = transform.flip != 0 ? width - 1 - x : x;
  return y < transform.rows.begin || y >= transform.rows.end || column < transform.columns.begin ||
         column >= transform.columns.end;
}

}  // namespace convoy::kernels
