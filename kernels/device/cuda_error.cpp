#include "kernels/device/cuda_error.h"

#include <fmt/format.h>

namespace convoy::kernels {

void throw_cuda_error(cudaError_t status, const char* expression, const char* file, int line) {
  cudaGetLastError();  // an error that does not stick to the device is dealt with here
  throw std::runtime_error(fmt::format("{} failed: {} ({}), at {}:{}", expression, cudaGetErrorName(status),
                                       cudaGetErrorString(status), file, line));
}

}  // namespace convoy::kernels
