// The one reservation of memory that a device's tensors live in: the host's for host backends, else the current GPU's.
#pragma once

#include <cstddef>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

class Arena {
 public:
  Arena() = default;
  // Reserves zeroed memory, page aligned. Throws std::runtime_error saying how much was asked for and what there is.
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
