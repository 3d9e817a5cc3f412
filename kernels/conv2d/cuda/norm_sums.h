// Finishes a batch norm's backward_reduce after a convolution has written column sums. CUDA builds
// only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// Adds `count` slots of [2][channels], at most gemm::kSumSlots of them. A slot has sums of g, and
// of g times the norm's input. `pixels`: the pixels of one image.
void finish_norm_sums(const float* slots, int count, int channels, int pixels, const InputNorm& norm,
                      const StepControl* control, cudaStream_t stream, Members members);

}  // namespace convoy::kernels::conv
