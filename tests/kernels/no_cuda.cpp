// Stands in for cuda_memory.cpp in builds without CUDA.
#include <algorithm>

#include "tests/kernels/host_memory.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {

bool gpu_present() { return false; }

std::shared_ptr<std::byte> allocate(Backend backend, std::size_t bytes) {
  if (backend == Backend::cuda) throw_no_backend(backend);
  return allocate_host(bytes);
}
void copy_in(Backend, std::byte* to, const std::byte* from, std::size_t bytes) {
  std::copy_n(from, bytes, to);
}
void copy_out(Backend, std::byte* to, const std::byte* from, std::size_t bytes) {
  std::copy_n(from, bytes, to);
}

}  // namespace convoy::kernels::testing
