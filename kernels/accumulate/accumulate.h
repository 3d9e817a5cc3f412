// Adds up the gradients of a batch that is computed in parts, one part after the other.
//   accumulate_gradients  {sum, gradients} -> {total}
//                         total = (control->part > 0 ? sum : 0) + control->share * gradients
// All operands are f32 [n]. `sum` is the total of the earlier parts. The first part does not read
// it, so the caller need not clear it. `total` may be the buffer of `sum` (except in the last part)
// or of `gradients` (in the last part). `gradients` belong to the mean loss over the part's
// samples. `share` is the number of the part's valid samples divided by that of the whole batch, so
// the total after the last part is the gradient of the mean loss over the whole batch.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AccumulateProblem {};

// Throws std::invalid_argument unless the operands fit together. Returns the number of elements
// that each operand has.
std::int64_t check_accumulate(KernelRequest& request);

CONVOY_KERNEL(accumulate_gradients, AccumulateProblem);

}  // namespace convoy::kernels
