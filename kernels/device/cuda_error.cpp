#include "kernels/device/cuda_error.h"

#include <fmt/format.h>

namespace convoy::kernels {

void throw_cuda_error(cudaError_t status, const char* expression, const char* file, int line) {
  // Clear the error, so that the next call does not report it again. Some errors cannot be cleared.
  cudaGetLastError();
  throw CudaError(fmt::format("{} failed: {} ({}), at {}:{}", expression, cudaGetErrorName(status),
                              cudaGetErrorString(status), file, line),
                  status);
}

}  // namespace convoy::kernels
