// GPUs and their memory as callers without CUDA's headers see them. In builds without CUDA there are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct GpuInfo {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
};

// GPUs that this process may use. 0 in a build without CUDA; throws std::runtime_error with the runtime's reason when
// the driver is missing or too old.
int gpu_count();
// Makes a GPU this thread's: what is allocated and launched from now on belongs to it. Throws std::runtime_error when it
// does not exist or cannot be used.
GpuInfo use_gpu(int index);

// Zeroed memory of the current GPU, aligned to at least 256 bytes. Throws OutOfMemory (errors.h), which says how much was
// asked for and how much is free.
std::byte* reserve_gpu_memory(std::size_t bytes);
void release_gpu_memory(std::byte* data) noexcept;

// Bytes of the current GPU that nobody has taken.
std::int64_t free_gpu_memory();

// Copies between host memory and that of a backend. On CUDA they wait for everything launched before, and return when
// they are done: for setting up and reading out, not for steps.
void copy_in(Backend backend, void* to, const void* from, std::size_t bytes);
void copy_out(Backend backend, void* to, const void* from, std::size_t bytes);
// The first `block` bytes again and again, until there are `bytes`. Waits like the copies above.
void repeat(Backend backend, void* data, std::size_t block, std::size_t bytes);
// Zeros, in the order of the stream.
void clear(Backend backend, void* data, std::size_t bytes, Stream stream);

// Waits for everything that was launched; host backends are done when a launch returns.
void synchronize(Backend backend);

// Page-locked host memory: copies from it to a GPU run beside computation.
std::pmr::memory_resource& pinned_memory();

}  // namespace convoy::kernels
