// Reserves one piece of memory for all tensors of a device: host memory for host backends, else
// memory of the current GPU.
#pragma once

#include <cstddef>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

class Arena {
 public:
  Arena() = default;
  // Reserves zeroed, page-aligned memory. Throws OutOfMemory (errors.h).
  Arena(Backend backend, std::size_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool on_gpu_ = false;
};

}  // namespace convoy::kernels
