// Allocates memory for the host backends. Both cuda_memory.cpp and no_cuda.cpp use this.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace convoy::kernels::testing {

inline std::shared_ptr<std::byte> allocate_host(std::size_t bytes) {
  constexpr std::align_val_t kAlignment{128};
  auto* const start = static_cast<std::byte*>(::operator new(bytes + 64, kAlignment));
  return {start + 64, [start](std::byte*) { ::operator delete(start, kAlignment); }};
}

}  // namespace convoy::kernels::testing
