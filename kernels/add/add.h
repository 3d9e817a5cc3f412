// Adds two or more tensors of one shape and layout, for residual connections and for tensors that
// have several gradients.
//   add_forward  {a, b, ...} -> {y, [sums: statistics]}   y may be a
// sums are batch norm's sums over y as it is stored (batch_norm.h). They need a control; the
// reference and CUDA backends compute them. There is no backward, because the gradient of every
// input is dy itself.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AddProblem {
  bool statistics = false;  // also computes sums, for a batch norm that reads y
};

CONVOY_KERNEL(add_forward, AddProblem);

}  // namespace convoy::kernels
