// Copies a tensor into another layout and zeroes channel padding. Both layouts are given.
//   reorder_forward  {x} -> {y}
// x and y have the same shape, or one is an image [N, C, H, W] and the other its rows [N, C H W].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReorderProblem {};

CONVOY_KERNEL(reorder_forward, ReorderProblem);

// Checks the request. Rows get the shape of their images in the result; they are row_major.
struct ReorderEnds {
  TensorDesc x, y;
};
ReorderEnds reorder_ends(KernelRequest& request);

}  // namespace convoy::kernels
