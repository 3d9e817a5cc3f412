// Finds GPUs and reserves, copies and clears their memory, for callers without CUDA's headers.
// Builds without CUDA have no GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "kernels/device/kernel.h"

namespace convoy::kernels {

struct GpuInfo {
  int index = 0;
  std::string name;  // for example "NVIDIA H200"
  std::int64_t memory_bytes = 0;
};

// Returns the number of GPUs that this process may use, which is 0 in builds without CUDA. Throws
// CudaError with the runtime's reason if the driver is too old.
int gpu_count();
// Makes a GPU the current device of the calling thread. Throws std::runtime_error if the GPU does
// not exist or is too old.
GpuInfo use_gpu(int index);

// Returns zeroed memory of the current GPU, aligned to at least 256 bytes. Throws OutOfMemory
// (errors.h), whose message says how much was requested and how much is free.
std::byte* reserve_gpu_memory(std::size_t bytes);
void release_gpu_memory(std::byte* data) noexcept;

// Returns how many bytes of the current GPU's memory are free.
std::int64_t free_gpu_memory();

// Copy between host memory and a backend's memory, and return when the copy is done. So use them
// for set-up and results, not in steps. On CUDA a copy waits for all earlier work of the device, or
// with After::nothing for no work: then the caller must know that no work in progress uses these
// bytes.
enum class After : std::uint8_t { all_work, nothing };
void copy_in(Backend backend, void* to, const void* from, std::size_t bytes, After after = After::all_work);
void copy_out(Backend backend, void* to, const void* from, std::size_t bytes, After after = After::all_work);
// Repeats the first `block` bytes until `bytes` are filled. On CUDA, waits as copy_in() does.
void repeat(Backend backend, void* data, std::size_t block, std::size_t bytes);
// Copies within a backend's memory, or between that memory and memory of Arena::for_copies(). The
// copy is ordered on the stream.
void copy(Backend backend, void* to, const void* from, std::size_t bytes, Stream stream);
// Fills memory with zeros, ordered on the stream.
void clear(Backend backend, void* data, std::size_t bytes, Stream stream);

// Waits for all launched work. On host backends the work is done when a launch returns.
void synchronize(Backend backend);

// Allocates page-locked host memory. Copies between it and a GPU overlap computation.
std::pmr::memory_resource& pinned_memory();

}  // namespace convoy::kernels
