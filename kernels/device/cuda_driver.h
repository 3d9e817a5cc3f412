// Finds functions of the CUDA driver through the runtime. The program is not linked with libcuda,
// so it also starts where libcuda is missing. CUDA builds only.
#pragma once

#include <cudaTypedefs.h>

#include <stdexcept>
#include <string>

#include "kernels/device/cuda_error.h"

namespace convoy::kernels {

// Returns the driver function `name`, with the signature that it has in CUDA version `version`,
// which is written like CUDA_VERSION (12000 is 12.0). `Function` is its pointer type, such as the
// PFN_… type in cudaTypedefs.h.
template <typename Function>
Function driver_function(const char* name, unsigned version = 12000) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  CONVOY_CUDA(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the CUDA driver has no " + std::string(name) + ": a driver for CUDA " +
                             std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) +
                             " or later is needed");
  return reinterpret_cast<Function>(found);
}

inline void check_driver(CUresult status, const char* name) {
  if (status != CUDA_SUCCESS)
    throw std::runtime_error(std::string(name) + " failed: CUDA driver error " + std::to_string(status));
}

}  // namespace convoy::kernels
