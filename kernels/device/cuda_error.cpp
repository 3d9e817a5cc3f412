#include "kernels/device/cuda_error.h"

#include <fmt/format.h>

namespace convoy::kernels {

void throw_cuda_error(cudaError_t status, const char* expression, const char* file, int line) {
  // clears the error, unless it is one that the device keeps until the process ends
  cudaGetLastError();
  throw CudaError(fmt::format("{} failed: {} ({}), at {}:{}", expression, cudaGetErrorName(status),
                              cudaGetErrorString(status), file, line),
                  status);
}

}  // namespace convoy::kernels
