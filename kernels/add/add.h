// Sum of two or more tensors of one shape and layout: residual connections, and gradients that meet.
//   add_forward  {a, b, ...} -> {y, [sums: statistics]}   y may be a
// sums: batch norm's over y as it is stored, see batch_norm.h. They need a control; reference and cuda give them.
// There is no backward: the gradient of every input is dy itself.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AddProblem {
  bool statistics = false;  // for the batch norm behind it
};

CONVOY_KERNEL(add_forward, AddProblem);

}  // namespace convoy::kernels
