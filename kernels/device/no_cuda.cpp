// Stands in for cuda_device_memory.cpp in builds without CUDA.
#include <cstring>

#include "kernels/device/device_memory.h"

namespace convoy::kernels {

int gpu_count() { return 0; }
GpuInfo use_gpu(int) { throw_no_backend(Backend::cuda); }
std::byte* reserve_gpu_memory(std::size_t) { throw_no_backend(Backend::cuda); }
void release_gpu_memory(std::byte*) noexcept {}
void copy_in(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_out(Backend, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void synchronize(Backend) {}
std::pmr::memory_resource& pinned_memory() { throw_no_backend(Backend::cuda); }

}  // namespace convoy::kernels
