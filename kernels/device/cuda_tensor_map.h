// Tensor maps, the descriptors through which Hopper's copy engine (TMA) reads and writes tensors. Host code;
// CUDA builds only.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "kernels/device/tensor.h"

namespace convoy::kernels {

// A strided tensor cut into boxes that lie in shared memory in the 128-byte swizzle. extents and box: innermost
// first; pitches: elements from one index of dimension 1, 2 … to the next. What a box reaches outside the tensor
// reads as zero and is not written. Addresses and pitches must be multiples of 16 bytes; throws
// std::runtime_error if the driver refuses.
CUtensorMap tiled_map(DType type, const void* data, const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& pitches, const std::vector<std::uint32_t>& box);

}  // namespace convoy::kernels
