// Errors of devices that callers must tell apart. Both classes derive from std::runtime_error. This
// header does not include CUDA's headers.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace convoy::kernels {

// A call of the CUDA runtime failed.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& message, int code) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }  // the value of the call's cudaError_t

 private:
  int code_;
};

// A GPU or the host has less free memory than was requested.
class OutOfMemory : public std::runtime_error {
 public:
  OutOfMemory(const std::string& message, std::size_t bytes) : std::runtime_error(message), bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }  // how many bytes were requested

 private:
  std::size_t bytes_;
};

}  // namespace convoy::kernels
