// Finds functions of the CUDA driver at run time, so that programs start on machines without a
// driver.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

#include "kernels/device/cuda_error.h"

namespace convoy::comm {

// Returns a function of the driver with its signature in CUDA 12.0.
template <typename Function>
Function* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  CONVOY_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  if (function == nullptr || found != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the CUDA driver has no " + std::string(name) + ": too old");
  return reinterpret_cast<Function*>(function);
}

inline void check_driver(CUresult status, const char* name) {
  if (status != CUDA_SUCCESS)
    throw std::runtime_error(name + (" failed: CUDA driver error " + std::to_string(status)));
}

}  // namespace convoy::comm
