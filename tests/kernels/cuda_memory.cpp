// Gives the tests memory of all backends in CUDA builds.
#include <cstring>

#include "kernels/device/cuda_runtime.h"
#include "tests/kernels/host_memory.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {

bool gpu_present() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::shared_ptr<std::byte> allocate(Backend backend, std::size_t bytes) {
  if (backend != Backend::cuda) return allocate_host(bytes);
  const auto buffer = std::make_shared<DeviceBuffer>(bytes + 64);
  return {buffer, buffer->data() + 64};
}

void copy_in(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (backend != Backend::cuda)
    std::memcpy(to, from, bytes);
  else
    CONVOY_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

void copy_out(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (backend != Backend::cuda)
    std::memcpy(to, from, bytes);
  else
    CONVOY_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

}  // namespace convoy::kernels::testing
