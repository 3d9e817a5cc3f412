// Adds up the gradients of a batch that is computed in parts, one part after the other.
//   accumulate_gradients  {sum, gradients} -> {total}
//                         total = (control->part > 0 ? sum : 0) + control->share * gradients
// All operands are f32 [n]. `sum` is the total so far. The first part ignores it, so the caller
// need not clear it. total may be sum (in all parts but the last) or gradients (in the last part).
// `gradients` belong to the part's mean loss, and share is the part's share of the step's real
// samples. So the last total is the gradient of the mean loss over the whole batch.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AccumulateProblem {};

// Throws std::invalid_argument unless the operands fit together. Returns the number of elements of
// each.
std::int64_t check_accumulate(KernelRequest& request);

CONVOY_KERNEL(accumulate_gradients, AccumulateProblem);

}  // namespace convoy::kernels
