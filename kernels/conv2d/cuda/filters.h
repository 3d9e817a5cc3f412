// Makes rearranged copies of filters and of their gradients. CUDA builds only.
#pragma once

#include <cstddef>

#include "kernels/device/kernel.h"

namespace convoy::kernels::conv {

// Transposes [K][taps][C] to [C][taps][K], for elements of 2 or 4 bytes.
void transpose_filters(const void* filters, void* to, int k, int taps, int c, std::size_t element_bytes,
                       Stream stream, MemberLayout members);

// Adds up `pieces`, [splits][rows][columns], over the splits, from the first to the last. Writes
// the transposed result to sums[columns][rows].
void add_transposed(const float* pieces, int splits, std::int64_t rows, std::int64_t columns, float* sums,
                    Stream stream, MemberLayout members);

}  // namespace convoy::kernels::conv
