// Checks calls of the CUDA runtime. If a call fails, CONVOY_CUDA(cudaMemcpy(...)) throws CudaError
// with the expression, the error's name and text, the file and the line. Host code; CUDA builds
// only.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/device/errors.h"

namespace convoy::kernels {

[[noreturn]] void throw_cuda_error(cudaError_t status, const char* expression, const char* file, int line);

#define CONVOY_CUDA(expression)                                                                 \
  do {                                                                                          \
    const cudaError_t convoy_cuda_status = (expression);                                        \
    if (convoy_cuda_status != cudaSuccess)                                                      \
      ::convoy::kernels::throw_cuda_error(convoy_cuda_status, #expression, __FILE__, __LINE__); \
  } while (false)

}  // namespace convoy::kernels
