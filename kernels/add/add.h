// Adds two or more tensors of one shape and layout, as in residual connections, or if several
// gradients meet.
//   add_forward  {a, b, ...} -> {y, [sums: statistics]}   y may be a
// sums: batch norm's sums over y as it is stored (batch_norm.h). They need a control; the reference
// and cuda backends compute them. There is no backward: the gradient of every input is dy itself.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AddProblem {
  bool statistics = false;  // for the batch norm that follows
};

CONVOY_KERNEL(add_forward, AddProblem);

}  // namespace convoy::kernels
