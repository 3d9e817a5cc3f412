// Rearranged copies of filters and of their gradients. CUDA builds only.
#pragma once

#include <cstddef>

#include "kernels/device/kernel.h"

namespace convoy::kernels::conv {

// [K][taps][C] to [C][taps][K], of 2- or 4-byte elements.
void transpose_filters(const void* filters, void* to, int k, int taps, int c, std::size_t element_bytes,
                       Stream stream);

}  // namespace convoy::kernels::conv
