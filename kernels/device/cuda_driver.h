// Finds functions of the CUDA driver through the runtime. The program is not linked with libcuda,
// so it also starts where libcuda is missing. CUDA builds only.
#pragma once

#include <cudaTypedefs.h>
#include <fmt/format.h>

#include <stdexcept>

#include "kernels/device/cuda_error.h"

namespace convoy::kernels {

// `Function` is the PFN_… type that cudaTypedefs.h has for `name`.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  CONVOY_CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw std::runtime_error(
        fmt::format("the CUDA driver has no {}: a driver for CUDA 12 or later is needed", name));
  return reinterpret_cast<Function>(found);
}

}  // namespace convoy::kernels
