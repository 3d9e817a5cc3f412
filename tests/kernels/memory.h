// Gives tests the memory of a backend, and says whether this machine can test the backend.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/device/kernel.h"

namespace convoy::kernels::testing {

// Returns whether this is a CUDA build on a machine with a GPU.
bool gpu_present();

// Returns memory that the backend's kernels can use, aligned to only 64 bytes, so that a kernel
// that needs more fails.
std::shared_ptr<std::byte> allocate(Backend backend, std::size_t bytes);
// copy_in() copies from host memory to a backend's memory, and copy_out() copies back. Both wait
// for all work on the default stream.
void copy_in(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes);
void copy_out(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace convoy::kernels::testing
