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

Arena::Arena(Backend backend, std::size_t bytes)
    : bytes_(bytes), place_(backend == Backend::cuda ? Place::gpu : Place::host) {
  if (bytes == 0) return;
  if (place_ == Place::gpu) {
    data_ = reserve_gpu_memory(bytes);
    return;
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw OutOfMemory(fmt::format("cannot reserve {} MiB of memory: {}", bytes >> 20, std::strerror(errno)),
                      bytes);
  // Large pages cause fewer TLB misses. If the operating system refuses, the memory is only slower.
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
}

Arena Arena::for_copies(Backend backend, std::size_t bytes) {
  if (backend != Backend::cuda || bytes == 0) return {Backend::cpu, bytes};
  Arena arena;
  arena.data_ = static_cast<std::byte*>(pinned_memory().allocate(bytes));
  arena.bytes_ = bytes;
  arena.place_ = Place::page_locked;
  return arena;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  if (place_ == Place::gpu)
    release_gpu_memory(data_);
  else if (place_ == Place::page_locked)
    pinned_memory().deallocate(data_, bytes_);
  else
    ::munmap(data_, bytes_);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      place_(other.place_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(place_, other.place_);
  return *this;
}

}  // namespace convoy::kernels
