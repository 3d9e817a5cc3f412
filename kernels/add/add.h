// Adds two or more tensors of one shape and layout, for residual connections and for tensors that
// have several gradients.
//   add_forward  {a, b, ...} -> {y, [sums: statistics]}   y may be a
// `sums` are the per-channel sums that batch norm needs (batch_norm_statistics in batch_norm.h),
// taken over y after it was rounded to its type. They need a StepControl, and only the reference
// and CUDA backends compute them. There is no backward operation, because the gradient of every
// input is dy itself.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AddProblem {
  bool statistics = false;  // also computes `sums`, for a batch norm that reads y
};

CONVOY_KERNEL(add_forward, AddProblem);

}  // namespace convoy::kernels
