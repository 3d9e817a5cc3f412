// Copies a tensor into another layout, and sets the padding of channels to zero. The request names
// both layouts.
//   reorder_forward  {x} -> {y}
// x and y have the same shape, or one is an image [N, C, H, W] and the other its rows [N, C H W].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReorderProblem {};

CONVOY_KERNEL(reorder_forward, ReorderProblem);

// The checked x and y of a request. If one of them has the shape of rows, [N, C H W], it is
// described here as a row_major image.
struct ReorderEnds {
  TensorDesc x, y;
};
ReorderEnds reorder_ends(KernelRequest& request);

}  // namespace convoy::kernels
