// Fills memory with numbers before kernels are timed, because the numbers influence a kernel's
// time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::app {

// Fills memory with numbers of moderate size, whether they are read as f32 or as bf16. Other
// numbers would distort times: denormals are slow, zeros need little power and so let the device
// run faster, and large numbers overflow when kernels run repeatedly.
void fill_with_numbers(kernels::Backend backend, std::byte* data, std::int64_t bytes);

}  // namespace convoy::app
