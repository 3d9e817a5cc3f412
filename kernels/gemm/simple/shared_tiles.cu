// The shared_tiles kernel of matrix products. A block computes 32 x 32 elements of C. It copies 32
// x 32 tiles of the operands to shared memory, so each element is read from device memory 32 times
// less often than by the elementwise kernel.
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"
#include "kernels/gemm/simple/strided.cuh"

namespace convoy::kernels::gemm {
namespace {

constexpr int kTile = 32;

// Loads tile[i][j] = matrix(row + i, column + j), or 0 outside the matrix. Neighbouring threads
// read neighbouring addresses.
template <typename T>
__device__ void load_tile(float (&tile)[kTile][kTile + 1], const Strided<T>& matrix, std::int64_t row,
                          std::int64_t column, std::int64_t rows, std::int64_t columns) {
  const bool by_columns = matrix.row_stride == 1 && matrix.column_stride != 1;
  const int i = by_columns ? threadIdx.x : threadIdx.y, j = by_columns ? threadIdx.y : threadIdx.x;
  tile[i][j] = row + i < rows && column + j < columns ? matrix(row + i, column + j) : 0.0f;
}

template <typename T>
__global__ __launch_bounds__(kTile* kTile) void shared_tiles_kernel(Strided<T> a, Strided<T> b,
                                                                    std::int64_t m, std::int64_t n,
                                                                    std::int64_t k, Epilogue epilogue,
                                                                    std::ptrdiff_t member_stride) {
  a = cuda::of_member(a, member_stride);
  b = cuda::of_member(b, member_stride);
  epilogue = cuda::of_member(epilogue, member_stride);
  __shared__ float tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];
  const std::int64_t row0 = std::int64_t{blockIdx.x} * kTile, column0 = std::int64_t{blockIdx.y} * kTile;
  float sum = 0;
  for (std::int64_t i = 0; i < k; i += kTile) {
    load_tile(tile_a, a, row0, i, m, k);
    load_tile(tile_b, b, i, column0, k, n);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTile; ++j) sum = fmaf(tile_a[threadIdx.y][j], tile_b[j][threadIdx.x], sum);
    __syncthreads();
  }
  const std::int64_t row = row0 + threadIdx.y, column = column0 + threadIdx.x;
  if (row < m && column < n) epilogue.store(sum, row, column);
}

template <typename T>
void launch(const Problem& p, const Buffers& buffers, const Epilogue& epilogue, cudaStream_t stream) {
  const dim3 grid(unsigned(ceil_div(p.m, kTile)), unsigned(ceil_div(p.n, kTile)));
  cuda::launch(shared_tiles_kernel<T>, grid, dim3(kTile, kTile), Stream(stream), buffers.members,
               strided_a<T>(p, buffers), strided_b<T>(p, buffers), p.m, p.n, p.k, epilogue);
}

}  // namespace

const RungEntry& shared_tiles_rung() {
  static const RungEntry entry{simple_supports,
                               simple_candidates<Rung::shared_tiles>,
                               bind_simple<launch<float>, launch<__nv_bfloat16>>,
                               {"32x32"}};
  return entry;
}

}  // namespace convoy::kernels::gemm
