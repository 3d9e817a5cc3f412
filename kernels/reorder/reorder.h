// Copies a tensor into another layout and zeroes channel padding. Both layouts are given.
//   reorder_forward  {x} -> {y}
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ReorderProblem {};

CONVOY_KERNEL(reorder_forward, ReorderProblem);

}  // namespace convoy::kernels
