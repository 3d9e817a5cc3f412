// Concatenates images [N, Ci, H, W] or matrices [N, Ci] along the channels.
//   concat_forward   {x0, x1, ...} -> {y}     y [N, C0 + C1 + ..., H, W]
//   concat_backward  {dy} -> {dx0, dx1, ...}
// On the reference and CUDA backends the matrices may also be batch norm's sums, f64 [2, Ci].
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct ConcatProblem {};

CONVOY_KERNEL(concat_forward, ConcatProblem);
CONVOY_KERNEL(concat_backward, ConcatProblem);

}  // namespace convoy::kernels
