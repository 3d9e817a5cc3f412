// Finishes a batch norm's backward_reduce after a convolution has summed. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Adds `count` slots (at most gemm::kSumSlots) of [2][channels]: sums of g, and of g times the
// norm's input. `pixels`: pixels of one image.
void finish_norm_sums(const float* slots, int count, int channels, int pixels, const InputNorm& norm,
                      const StepControl* control, cudaStream_t stream, Members members);

}  // namespace convoy::kernels::conv
