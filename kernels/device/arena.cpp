#include "kernels/device/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "kernels/device/device_memory.h"
#include "kernels/device/errors.h"

namespace convoy::kernels {

Arena::Arena(Backend backend, std::size_t bytes) : bytes_(bytes), on_gpu_(backend == Backend::cuda) {
  if (bytes == 0) return;
  if (on_gpu_) {
    data_ = reserve_gpu_memory(bytes);
    return;
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw OutOfMemory(fmt::format("cannot reserve {} MiB of memory: {}", bytes >> 20, std::strerror(errno)),
                      bytes);
  // Large pages cause fewer TLB misses. A refusal does no harm.
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  on_gpu_ ? release_gpu_memory(data_) : static_cast<void>(::munmap(data_, bytes_));
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      on_gpu_(other.on_gpu_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(on_gpu_, other.on_gpu_);
  return *this;
}

}  // namespace convoy::kernels
