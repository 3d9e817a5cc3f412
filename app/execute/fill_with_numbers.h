// Numbers for timing: a kernel's time and power depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::app {

// Fills memory with moderate numbers, whether read as f32 or as bf16. Denormals are slow, zeros
// need little power, and rounds of timing make large numbers grow.
void fill_with_numbers(kernels::Backend backend, std::byte* data, std::int64_t bytes);

}  // namespace convoy::app
