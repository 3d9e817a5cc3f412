// An Arena is one reservation of memory for all tensors of a device. It is host memory on host
// backends, else memory of the current GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

class Arena {
 public:
  Arena() = default;
  // Reserves zeroed, page-aligned memory. Throws OutOfMemory (errors.h).
  Arena(Backend backend, std::size_t bytes);
  // Reserves host memory. Copies between it and a backend's memory run at the full rate, because on
  // CUDA it is page-locked. Its content is undefined. Throws OutOfMemory.
  static Arena for_copies(Backend backend, std::size_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  enum class Place : std::uint8_t { host, page_locked, gpu };

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Place place_ = Place::host;
};

}  // namespace convoy::kernels
