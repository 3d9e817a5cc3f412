// What stands before and behind the products proper: repacking operands, adding the pieces of k, sums of
// columns. All of it bound by memory.
#include "kernels/device/cuda_error.h"
#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

__global__ void sum_partials_kernel(Epilogue epilogue, const float* partial, int splits, std::int64_t m,
                                    std::int64_t n, std::int64_t pitch) {
  const std::int64_t quads = pitch / 4, stride = m * quads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < stride;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / quads, column = i % quads * 4;
    const float4* from = reinterpret_cast<const float4*>(partial) + i;
    float4 sum = from[0];
#pragma unroll 8
    for (int piece = 1; piece < splits; ++piece) {
      const float4 next = __ldcs(from + piece * stride);
      sum.x += next.x;
      sum.y += next.y;
      sum.z += next.z;
      sum.w += next.w;
    }
    const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (column + j < n) epilogue.store(sums[j], row, column + j);
  }
}

__global__ void sum_columns_kernel(Epilogue epilogue, std::int64_t m, std::int64_t n, float* slots) {
  __shared__ float shared[2][8][33];
  for (std::int64_t first = 0; first < n; first += 32) {
    const std::int64_t column = first + threadIdx.x;
    float sum = 0, square = 0;
    for (std::int64_t row = blockIdx.x * 8 + threadIdx.y; column < n && row < m; row += gridDim.x * 8) {
      const float value = epilogue.load(row * epilogue.ldc + column);
      sum += value;
      square = fmaf(value, value, square);
    }
    shared[0][threadIdx.y][threadIdx.x] = sum;
    shared[1][threadIdx.y][threadIdx.x] = square;
    __syncthreads();
    if (threadIdx.y < 2 && column < n) {
      float total = 0;
      for (int i = 0; i < 8; ++i) total += shared[threadIdx.y][i][threadIdx.x];
      slots[(std::int64_t{blockIdx.x} * 2 + threadIdx.y) * n + column] = total;
    }
    __syncthreads();
  }
}

// One block 32 of the 2 n columns of slots.
__global__ void sum_slots_kernel(const float* slots, int count, std::int64_t columns, double* sums) {
  __shared__ double shared[32][33];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  double sum = 0;
  for (int slot = threadIdx.y; column < columns && slot < count; slot += 32) sum += slots[slot * columns + column];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    for (int i = 1; i < 32; ++i) sum += shared[i][threadIdx.x];
    sums[column] = sum;
  }
}

template <typename T>
__global__ void repack_kernel(const T* in, std::int64_t in_pitch, bool transpose, T* out, std::int64_t out_pitch,
                              std::int64_t rows, std::int64_t columns) {
  __shared__ T tile[32][33];
  const std::int64_t row0 = std::int64_t{blockIdx.x} * 32;
  for (std::int64_t column0 = std::int64_t{blockIdx.y} * 32; column0 < columns; column0 += gridDim.y * 32) {
    if (!transpose) {
      for (int i = threadIdx.y; i < 32; i += 8)
        if (row0 + i < rows && column0 + threadIdx.x < columns)
          out[(row0 + i) * out_pitch + column0 + threadIdx.x] = in[(row0 + i) * in_pitch + column0 + threadIdx.x];
      continue;
    }
    for (int i = threadIdx.y; i < 32; i += 8)
      if (column0 + i < columns && row0 + threadIdx.x < rows)
        tile[i][threadIdx.x] = in[(column0 + i) * in_pitch + row0 + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8)
      if (row0 + i < rows && column0 + threadIdx.x < columns)
        out[(row0 + i) * out_pitch + column0 + threadIdx.x] = tile[threadIdx.x][i];
    __syncthreads();
  }
}

}  // namespace

void sum_partials(const Epilogue& epilogue, const float* partial, int splits, std::int64_t m, std::int64_t n,
                  std::int64_t pitch, cudaStream_t stream) {
  const std::int64_t blocks = ceil_div(m * (pitch / 4), 256);
  sum_partials_kernel<<<unsigned(std::min<std::int64_t>(blocks, 132 * 32)), 256, 0, stream>>>(epilogue, partial,
                                                                                            splits, m, n, pitch);
  CONVOY_CUDA(cudaGetLastError());
}

std::size_t slot_elements(std::int64_t n, int slots) { return std::size_t(slots) * 2 * std::size_t(n); }

void sum_columns(const Epilogue& epilogue, std::int64_t m, std::int64_t n, float* slots, cudaStream_t stream) {
  sum_columns_kernel<<<kSumSlots, dim3(32, 8), 0, stream>>>(epilogue, m, n, slots);
  CONVOY_CUDA(cudaGetLastError());
}

void sum_slots(const float* slots, int count, std::int64_t n, double* sums, cudaStream_t stream) {
  sum_slots_kernel<<<unsigned(ceil_div(2 * n, 32)), dim3(32, 32), 0, stream>>>(slots, count, 2 * n, sums);
  CONVOY_CUDA(cudaGetLastError());
}

void repack(const void* in, std::int64_t in_pitch, bool transpose, void* out, std::int64_t out_pitch,
            std::int64_t out_rows, std::int64_t out_columns, std::size_t element_bytes, cudaStream_t stream) {
  const dim3 grid(unsigned(ceil_div(out_rows, 32)), unsigned(std::min<std::int64_t>(ceil_div(out_columns, 32), 65535)));
  const auto launch = [&]<typename T>(T) {
    repack_kernel<<<grid, dim3(32, 8), 0, stream>>>(static_cast<const T*>(in), in_pitch, transpose,
                                                    static_cast<T*>(out), out_pitch, out_rows, out_columns);
  };
  element_bytes == 2 ? launch(std::uint16_t{}) : launch(std::uint32_t{});
  CONVOY_CUDA(cudaGetLastError());
}

}  // namespace convoy::kernels::gemm
