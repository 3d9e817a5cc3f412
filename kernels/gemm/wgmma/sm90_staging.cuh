// Stages accumulators of the wgmma kernels: writes them to a TMA box in shared memory. A box has 64
// rows of 128 bytes, in the swizzle that TMA expects. Each warp of a consumer warpgroup writes 16
// of the rows. If A and B are exchanged (Config::swapped), accumulators hold C transposed, and each
// warp writes 16 of the columns. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/device/cuda_sm90.cuh"

namespace convoy::kernels::gemm {

__device__ inline std::uint32_t packed(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

// Writes accumulators to a box as bf16. A pair is two 8x8 matrices side by side, or 16 columns.
template <int pairs>
__device__ inline void stage_bf16(const float* sums, const std::uint8_t* buffer, int warp, int lane) {
  const int row = warp * 16 + lane % 16;
  const std::uint32_t line = sm90::shared_address(buffer) + row * 128;
#pragma unroll
  for (int pair = 0; pair < pairs; ++pair) {
    const int unit = pair * 2 + lane / 16;
    const float* from = sums + pair * 8;
    sm90::stmatrix_x4<false>(line + ((unit ^ (row & 7)) << 4), packed(from[0], from[1]),
                             packed(from[2], from[3]), packed(from[4], from[5]), packed(from[6], from[7]));
  }
}

// Writes accumulators to a box as bf16, for exchanged A and B. The stmatrix instruction transposes
// them.
__device__ inline void stage_swapped_bf16(const float* sums, const std::uint8_t* buffer, int warp, int lane) {
  const int unit = warp * 2 + lane / 8 % 2, row = lane / 16 * 8 + lane % 8;
  const std::uint32_t to = sm90::shared_address(buffer) + row * 128 + ((unit ^ (row & 7)) << 4);
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* from = sums + pair * 8;
    sm90::stmatrix_x4<true>(to + pair * 16 * 128, packed(from[0], from[1]), packed(from[2], from[3]),
                            packed(from[4], from[5]), packed(from[6], from[7]));
  }
}
__device__ inline void stage_swapped_f32(const float* sums, std::uint8_t* buffer, int chunk, int warp,
                                         int lane) {
  if (warp / 2 != chunk) return;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, column = warp % 2 * 16 + i / 2 % 2 * 8 + lane / 4;
    *reinterpret_cast<float*>(buffer + row * 128 + ((column / 4 ^ (row & 7)) << 4) + column % 4 * 4) =
        sums[i];
  }
}

// Writes accumulators to a box as f32, in 32 columns.
__device__ inline void stage_f32(const float* sums, std::uint8_t* buffer, int warp, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp * 16 + half * 8 + lane / 4;
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      const int unit = group * 2 + lane % 4 / 2;
      auto* to = reinterpret_cast<float2*>(buffer + row * 128 + ((unit ^ (row & 7)) << 4) + lane % 2 * 8);
      *to = make_float2(sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1]);
    }
  }
}

}  // namespace convoy::kernels::gemm
