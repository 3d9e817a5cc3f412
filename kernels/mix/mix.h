// Mixes every sample with its partner, as described by a MixParameters
// (kernels/device/mix_parameters.h).
//   mix_forward  {x [N, C, H, W], mix i32 [kMixWords]} -> {y [N, C, H, W]}
// y has the layout and the element type of x; it is computed in float32. Samples that are not valid
// are zero in y.
#pragma once

#include "kernels/device/kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {

struct MixProblem {};

// Throws std::invalid_argument unless the operands fit together. Sets y's layout to that of x.
void check_mix(KernelRequest& request);

CONVOY_KERNEL(mix_forward, MixProblem);

}  // namespace convoy::kernels
