// Finishes a backward_data that fuses a batch norm (Conv2dProblem::input_norm): adds up the column
// sums that the convolution's blocks have written. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Adds up `count` slots, at most gemm::kSumSlots. A slot is [2][channels]: sums of g
// (Conv2dProblem::input_norm), and sums of g times the norm's input. `pixels` is the number of
// pixels of an image.
void finish_norm_sums(const float* slots, int count, int channels, int pixels, const InputNorm& norm,
                      const StepControl* control, cudaStream_t stream, MemberLayout members);

}  // namespace convoy::kernels::conv
