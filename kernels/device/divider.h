// Divides by a number that is used many times. A division takes one multiplication and one shift;
// the GPU's own division takes about 40 dependent instructions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace convoy::kernels::cuda {

// Divides numbers below 2^31 by a constant d in [1, 2^31) (Granlund, Montgomery, PLDI 1994).
struct Divider {
  std::uint32_t divisor = 1, multiplier = 0, shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t d) : divisor(static_cast<std::uint32_t>(d)) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
  }
  __host__ __device__ std::uint32_t operator()(std::uint32_t n) const {
    return (static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32) + n) >> shift;
  }
};

}  // namespace convoy::kernels::cuda
