// Mixes every sample with its partner, as MixParameters say.
//   mix_forward  {x [N, C, H, W], mix i32 [kMixWords]} -> {y [N, C, H, W]}
// y lies as x and has its element type; it is computed in float32. Samples that are not valid are zero in y.
#pragma once

#include "kernels/device/kernel.h"
#include "kernels/device/mix_parameters.h"

namespace convoy::kernels {

struct MixProblem {};

// Throws std::invalid_argument unless the operands fit together; gives y the layout of x.
void check_mix(KernelRequest& request);

namespace reference {
Kernel mix_forward(const MixProblem& problem, KernelRequest& request);
}  // namespace reference
namespace cpu {
Kernel mix_forward(const MixProblem& problem, KernelRequest& request);
}  // namespace cpu
namespace cuda {
Kernel mix_forward(const MixProblem& problem, KernelRequest& request);
}  // namespace cuda

inline Kernel mix_forward(Backend backend, const MixProblem& problem, KernelRequest& request) {
  return select(backend, reference::mix_forward, cpu::mix_forward, cuda::mix_forward)(problem, request);
}

}  // namespace convoy::kernels
