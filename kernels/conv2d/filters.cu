#include "kernels/conv2d/filters.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {
namespace {

template <typename T>
__global__ void transpose(const T* from, T* to, int k, int taps, int c) {
  __shared__ T tile[32][33];
  const int c0 = int(blockIdx.x) * 32, k0 = int(blockIdx.y) * 32, x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int tap = blockIdx.z; tap < taps; tap += gridDim.z) {
    for (int i = y; i < 32; i += 8)
      if (k0 + i < k && c0 + x < c) tile[i][x] = from[(std::int64_t{k0 + i} * taps + tap) * c + c0 + x];
    __syncthreads();
    for (int i = y; i < 32; i += 8)
      if (c0 + i < c && k0 + x < k) to[(std::int64_t{c0 + i} * taps + tap) * k + k0 + x] = tile[x][i];
    __syncthreads();
  }
}

}  // namespace

void transpose_filters(const void* filters, void* to, int k, int taps, int c, std::size_t element_bytes,
                       Stream stream) {
  const dim3 grid(unsigned(cuda::ceil_div(c, 32)), unsigned(cuda::ceil_div(k, 32)),
                  unsigned(std::min(taps, 65535)));
  const auto launch = [&]<typename T>(T) {
    cuda::launch(transpose<T>, grid, 256, stream, static_cast<const T*>(filters), static_cast<T*>(to), k,
                 taps, c);
  };
  element_bytes == 2 ? launch(std::uint16_t{}) : launch(std::uint32_t{});
}

}  // namespace convoy::kernels::conv
