#include "kernels/device/cuda_error.h"

#include <fmt/format.h>

namespace convoy::kernels {

void throw_cuda_error(cudaError_t status, const char* expression, const char* file, int line) {
  // Clear the error. Some errors stay with the device until the process ends.
  cudaGetLastError();
  throw CudaError(fmt::format("{} failed: {} ({}), at {}:{}", expression, cudaGetErrorName(status),
                              cudaGetErrorString(status), file, line),
                  status);
}

}  // namespace convoy::kernels
