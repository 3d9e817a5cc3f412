#include "kernels/conv2d/cuda/filters.h"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::conv {
namespace {

template <typename T>
__global__ void transpose(const T* from, T* to, int k, int taps, int c, int column_tiles,
                          std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, from, to);
  __shared__ T tile[32][33];
  const int tap = int(blockIdx.x) / column_tiles, c0 = (int(blockIdx.x) - tap * column_tiles) * 32;
  const int k0 = int(blockIdx.y) * 32, x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int i = y; i < 32; i += 8)
    if (k0 + i < k && c0 + x < c) tile[i][x] = from[(std::int64_t{k0 + i} * taps + tap) * c + c0 + x];
  __syncthreads();
  for (int i = y; i < 32; i += 8)
    if (c0 + i < c && k0 + x < k) to[(std::int64_t{c0 + i} * taps + tap) * k + k0 + x] = tile[x][i];
}

// A block adds up 8 rows by 32 columns. Each warp adds up every eighth split, and then the block
// adds up the warps' sums. The order is the same in every run.
constexpr int kAddedRows = 8, kAddingWarps = 8;
__global__ void add_transposed_tiles(const float* pieces, int splits, std::int64_t rows, std::int64_t columns,
                                     float* sums, std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, pieces, sums);
  __shared__ float shared[kAddingWarps][kAddedRows][33];
  const std::int64_t row0 = std::int64_t{blockIdx.x} * kAddedRows, column0 = std::int64_t{blockIdx.y} * 32;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  float sum[kAddedRows] = {};
#pragma unroll 2
  for (int split = warp; split < splits; split += kAddingWarps)
#pragma unroll
    for (int i = 0; i < kAddedRows; ++i)
      if (row0 + i < rows && column0 + lane < columns)
        sum[i] += pieces[(split * rows + row0 + i) * columns + column0 + lane];
#pragma unroll
  for (int i = 0; i < kAddedRows; ++i) shared[warp][i][lane] = sum[i];
  __syncthreads();
  const int row = int(threadIdx.x) % kAddedRows, column = int(threadIdx.x) / kAddedRows;
  if (row0 + row >= rows || column0 + column >= columns) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kAddingWarps; ++i) total += shared[i][row][column];
  sums[(column0 + column) * rows + row0 + row] = total;
}

}  // namespace

void add_transposed(const float* pieces, int splits, std::int64_t rows, std::int64_t columns, float* sums,
                    Stream stream, MemberLayout members) {
  const dim3 grid(unsigned(cuda::ceil_div(rows, kAddedRows)), unsigned(cuda::ceil_div(columns, 32)));
  cuda::launch(add_transposed_tiles, grid, 32 * kAddingWarps, stream, members, pieces, splits, rows, columns,
               sums);
}

void transpose_filters(const void* filters, void* to, int k, int taps, int c, std::size_t element_bytes,
                       Stream stream, MemberLayout members) {
  const int column_tiles = int(cuda::ceil_div(c, 32));
  const dim3 grid(unsigned(column_tiles * taps), unsigned(cuda::ceil_div(k, 32)));
  const auto launch = [&]<typename T>(T) {
    cuda::launch(transpose<T>, grid, 256, stream, members, static_cast<const T*>(filters),
                 static_cast<T*>(to), k, taps, c, column_tiles);
  };
  element_bytes == 2 ? launch(std::uint16_t{}) : launch(std::uint32_t{});
}

}  // namespace convoy::kernels::conv
