#include "kernels/device/cuda_launch.cuh"
#include "kernels/gemm/bias_gradient.h"

namespace convoy::kernels::gemm {
namespace {

using cuda::ceil_div;

constexpr int kAcross = 32, kDown = 8;  // threads of a block: packs of columns by rows
constexpr int kLoads = 8;               // rows in flight a thread

std::int64_t slices_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t across = ceil_div(columns, kAcross);
  const std::int64_t most = std::max<std::int64_t>(4 * cuda::kMultiprocessors / across, 1);
  return std::clamp<std::int64_t>(ceil_div(rows, kDown * kLoads), 1, most);
}

// Rows slice, slice + slices … of blocks of kDown rows into partial[slice][columns].
template <typename T, int V>
__global__ void __launch_bounds__(kAcross* kDown)
    sum_slices(const T* dy, std::int64_t rows, std::int64_t columns, float* partial) {
  __shared__ float shared[kDown][kAcross * V];
  const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kAcross + x) * V;
  const std::int64_t stride = std::int64_t{gridDim.y} * kDown;
  float sum[V] = {};
  if (column < columns) {
    for (std::int64_t row = std::int64_t{blockIdx.y} * kDown + y; row < rows; row += kLoads * stride) {
      cuda::Pack<T, V> packs[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        packs[i] = row + i * stride < rows ? cuda::load_pack<V>(dy + (row + i * stride) * columns + column)
                                           : cuda::zero_pack<T, V>();
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        float values[V];
        cuda::unpack(packs[i], values);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] += values[v];
      }
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v) shared[y][x * V + v] = sum[v];
  __syncthreads();
  for (int i = threadIdx.x; i < kAcross * V; i += kAcross * kDown) {
    const std::int64_t at = std::int64_t{blockIdx.x} * kAcross * V + i;
    float total = 0;
    for (int other = 0; other < kDown; ++other) total += shared[other][i];
    if (at < columns) partial[std::int64_t{blockIdx.y} * columns + at] = total;
  }
}

__global__ void add_slices(const float* partial, int slices, std::int64_t columns, float* dbias) {
  __shared__ float shared[8][32];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  float sum = 0;
  for (int slice = threadIdx.y; column < columns && slice < slices; slice += 8)
    sum += partial[slice * columns + column];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < 8; ++i) sum += shared[i][threadIdx.x];
  dbias[column] = sum;
}

}  // namespace

std::size_t bias_gradient_workspace(std::int64_t rows, std::int64_t columns) {
  return std::size_t(slices_of(rows, columns)) * std::size_t(columns) * sizeof(float);
}

void bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t columns, float* dbias,
                   void* workspace, Stream stream) {
  const std::int64_t slices = slices_of(rows, columns);
  auto* partial = static_cast<float*>(workspace);
  cuda::with_packing(type, {columns}, [&](auto packing) {
    using P = decltype(packing);
    using T = typename P::Type;
    const dim3 grid(unsigned(ceil_div(columns, kAcross * P::kWidth)), unsigned(slices));
    cuda::launch(sum_slices<T, P::kWidth>, grid, kAcross * kDown, stream, static_cast<const T*>(dy), rows,
                 columns, partial);
  });
  add_slices<<<unsigned(ceil_div(columns, 32)), dim3(32, 8), 0, static_cast<cudaStream_t>(stream)>>>(
      partial, int(slices), columns, dbias);
  CONVOY_CUDA(cudaGetLastError());
}

}  // namespace convoy::kernels::gemm
