// Adds up the gradients of a batch that is computed in parts, one after the other.
//   accumulate_gradients  {sum, gradients} -> {total}
//                         f32 [n] each: total = (control->part > 0 ? sum : 0)
//                         + control->share * gradients, so the first part needs no zeros.
//                         total may be sum (for all parts but the last) or gradients (for the last)
// Gradients are those of a part's mean loss; shares of the step's real samples make the total that
// of the whole batch.
#pragma once

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct AccumulateProblem {};

// Throws std::invalid_argument unless the operands fit. Returns their elements.
std::int64_t check_accumulate(KernelRequest& request);

CONVOY_KERNEL(accumulate_gradients, AccumulateProblem);

}  // namespace convoy::kernels
