// Reorders NHWC images to rows in the order C, H, W, which a fully connected layer reads, and
// reorders such rows to images. CUDA builds only.
#pragma once

#include <cstdint>

#include "kernels/device/kernel.h"

namespace convoy::kernels::linear {

// Computes out[n][b][a] = in[n][a][b] for all planes n, for elements of 2 or 4 bytes.
void transpose_planes(const void* in, void* out, std::int64_t planes, std::int64_t a, std::int64_t b,
                      std::size_t element_bytes, Stream stream, MemberLayout members);

}  // namespace convoy::kernels::linear
