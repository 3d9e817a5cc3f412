// Stands in for cuda_device_memory.cpp in builds without CUDA.
#include <algorithm>
#include <cstring>

#include "kernels/device/device_memory.h"

namespace convoy::kernels {

int gpu_count() { return 0; }
GpuInfo use_gpu(int) { throw_no_backend(Backend::cuda); }
std::byte* reserve_gpu_memory(std::size_t) { throw_no_backend(Backend::cuda); }
void release_gpu_memory(std::byte*) noexcept {}
std::int64_t free_gpu_memory() { throw_no_backend(Backend::cuda); }
void copy_in(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_out(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void repeat(Backend, void* data, std::size_t block, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t done = block; done < bytes; done *= 2)
    std::memcpy(to + done, data, std::min(done, bytes - done));
}
void clear(Backend, void* data, std::size_t bytes, Stream) { std::memset(data, 0, bytes); }
void synchronize(Backend) {}
std::pmr::memory_resource& pinned_memory() { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels
