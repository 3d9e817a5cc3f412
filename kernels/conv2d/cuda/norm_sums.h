// What is left of a batch norm's backward_reduce when convolutions have taken the sums of its gradient. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv2d/engines.h"

namespace convoy::kernels::conv {

// From `count` slots (gemm::kSumSlots at most) of [2][channels]: sums of g, and of g times the norm's input. pixels: of an image.
void finish_norm_sums(const float* slots, int count, int channels, int pixels, const InputNorm& norm,
                      const StepControl* control, cudaStream_t stream);

}  // namespace convoy::kernels::conv
