// Memory of a backend under test, and whether it can be tested on this machine.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/device/kernel.h"

namespace convoy::kernels::testing {

// Whether this is a CUDA build and the machine has a GPU.
bool gpu_present();

// Memory that the backend's kernels read and write, aligned to 64 bytes and not to 128, so that a kernel that wants more
// fails.
std::shared_ptr<std::byte> allocate(Backend backend, std::size_t bytes);
// Copies between host memory and a backend's; waits for what was launched before on the default stream.
void copy_in(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes);
void copy_out(Backend backend, std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace convoy::kernels::testing
