// Finds GPUs and reserves their memory with the CUDA runtime.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "kernels/device/cuda_capture_lock.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/device/device_memory.h"

namespace convoy::kernels {
namespace {

class PinnedMemory final : public std::pmr::memory_resource {
  // Pinned memory is aligned to pages, which satisfies every alignment that callers request.
  void* do_allocate(std::size_t bytes, std::size_t) override { return allocate_pinned(bytes); }
  void do_deallocate(void* data, std::size_t, std::size_t) override { cudaFreeHost(data); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

int gpu_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  // The runtime returns the same status if there is no driver and if the driver is too old. The
  // version tells them apart: it is 0 if there is no driver.
  int driver = 0;
  if (status == cudaErrorInsufficientDriver) CONVOY_CUDA(cudaDriverGetVersion(&driver));
  if (status == cudaErrorNoDevice || (status == cudaErrorInsufficientDriver && driver == 0)) return 0;
  if (status != cudaSuccess)
    throw CudaError(fmt::format("no GPU can be used: {}", cudaGetErrorString(status)), status);
  return count;
}

GpuInfo use_gpu(int index) {
  const int count = gpu_count();
  if (index < 0 || index >= count)
    throw std::runtime_error(count == 0 ? "no GPU was found on this host"
                                        : fmt::format("GPU {}: this host has {}", index, count));
  CONVOY_CUDA(cudaSetDevice(index));
  cudaDeviceProp properties{};
  CONVOY_CUDA(cudaGetDeviceProperties(&properties, index));
  if (properties.major < 8)
    throw std::runtime_error(fmt::format("GPU {}, {}: compute capability {}.{}, expected 8.0 or later", index,
                                         properties.name, properties.major, properties.minor));
  return {index, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)};
}

std::byte* reserve_gpu_memory(std::size_t bytes) {
  std::byte* data = DeviceBuffer(bytes).release();
  CONVOY_CUDA(cudaMemset(data, 0, bytes));
  synchronize(Backend::cuda);
  return data;
}
void release_gpu_memory(std::byte* data) noexcept { cudaFree(data); }
std::int64_t free_gpu_memory() {
  std::size_t free = 0, all = 0;
  CONVOY_CUDA(cudaMemGetInfo(&free, &all));
  return static_cast<std::int64_t>(free);
}

namespace {

// Copies on the calling thread's own stream, so that the wait ends when this copy has ended.
void copy_and_wait(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, After after) {
  if (after == After::all_work) synchronize(Backend::cuda);
  CONVOY_CUDA(cudaMemcpyAsync(to, from, bytes, kind, cudaStreamPerThread));
  CONVOY_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

}  // namespace

void copy_in(Backend backend, void* to, const void* from, std::size_t bytes, After after) {
  if (backend == Backend::cuda)
    copy_and_wait(to, from, bytes, cudaMemcpyHostToDevice, after);
  else
    std::memcpy(to, from, bytes);
}

void copy_out(Backend backend, void* to, const void* from, std::size_t bytes, After after) {
  if (backend == Backend::cuda)
    copy_and_wait(to, from, bytes, cudaMemcpyDeviceToHost, after);
  else
    std::memcpy(to, from, bytes);
}

void repeat(Backend backend, void* data, std::size_t block, std::size_t bytes) {
  synchronize(backend);
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t done = block; done < bytes; done *= 2) {
    const std::size_t more = std::min(done, bytes - done);
    if (backend == Backend::cuda)
      CONVOY_CUDA(cudaMemcpy(to + done, data, more, cudaMemcpyDeviceToDevice));
    else
      std::memcpy(to + done, data, more);
  }
  synchronize(backend);
}

void copy(Backend backend, void* to, const void* from, std::size_t bytes, Stream stream) {
  if (backend == Backend::cuda)
    CONVOY_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()));
  else
    std::memcpy(to, from, bytes);
}

void clear(Backend backend, void* data, std::size_t bytes, Stream stream) {
  if (backend == Backend::cuda)
    CONVOY_CUDA(cudaMemsetAsync(data, 0, bytes, stream.get()));
  else
    std::memset(data, 0, bytes);
}

void synchronize(Backend backend) {
  if (backend != Backend::cuda) return;
  const std::unique_lock lock(capture_lock());
  CONVOY_CUDA(cudaDeviceSynchronize());
}

std::pmr::memory_resource& pinned_memory() {
  static PinnedMemory memory;
  return memory;
}

}  // namespace convoy::kernels
