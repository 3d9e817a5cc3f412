// Converts bf16 to float and back, for sums of bf16 over more than two ranks. CUDA builds only.
// Internal to comm.
#pragma once

#include <cstdint>

#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

void widen_bf16(const void* from, float* to, std::int64_t count, cudaStream_t stream);
// Converts back to bf16, rounded to nearest even.
void narrow_to_bf16(const float* from, void* to, std::int64_t count, cudaStream_t stream);

}  // namespace convoy::comm
