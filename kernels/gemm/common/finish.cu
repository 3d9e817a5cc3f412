// Kernels that run before and after products: they repack operands, add up the splits of k, and sum
// columns. Memory bandwidth limits them.
#include <algorithm>
#include <type_traits>

#include "kernels/device/cuda_members.cuh"
#include "kernels/device/gpu_model.h"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

// Adds up the splits of k and applies the epilogue. A group of `slices` threads computes four
// neighbouring elements: each thread adds up some of the splits, and then one thread adds up the
// threads' sums. The order is the same in every run.
template <int slices>
__global__ __launch_bounds__(256) void sum_partials_kernel(Epilogue epilogue, const float* partial,
                                                           int splits, std::int64_t m, std::int64_t n,
                                                           std::int64_t pitch, std::ptrdiff_t member_stride) {
  epilogue = cuda::of_member(epilogue, member_stride);
  cuda::move_to_member(member_stride, partial);
  constexpr int kAcross = 256 / slices;
  __shared__ float4 shared[slices][kAcross];
  const int across = threadIdx.x % kAcross, slice = threadIdx.x / kAcross;
  const std::int64_t quads = pitch / 4, plane = m * quads;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kAcross; first < plane;
       first += std::int64_t{gridDim.x} * kAcross) {
    const std::int64_t i = first + across;
    float4 sum = make_float4(0, 0, 0, 0);
    const auto add = [&](const float4& next) {
      sum.x += next.x;
      sum.y += next.y;
      sum.z += next.z;
      sum.w += next.w;
    };
    if (i < plane) {
      const float4* from = reinterpret_cast<const float4*>(partial) + i;
#pragma unroll 8
      for (int piece = slice; piece < splits; piece += slices) add(__ldcs(from + piece * plane));
    }
    if constexpr (slices > 1) {
      shared[slice][across] = sum;
      __syncthreads();
      if (slice == 0)
        for (int other = 1; other < slices; ++other) add(shared[other][across]);
      __syncthreads();
    }
    const std::int64_t row = i / quads, column = i % quads * 4;
    const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
    if (slice == 0 && i < plane) epilogue.store_run(sums, row, column, n);
  }
}

__global__ void sum_columns_kernel(Epilogue epilogue, std::int64_t m, std::int64_t n, float* slots,
                                   std::ptrdiff_t member_stride) {
  epilogue = cuda::of_member(epilogue, member_stride);
  cuda::move_to_member(member_stride, slots);
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

// Adds up the slots of column sums (rungs.h). A block computes 32 columns. With kJoined, a row of C
// consists of several joined rows, and a loop adds up their sums, too. The loop costs 2 us, so
// there is a version of the kernel without it.
template <typename Slot, bool kJoined>
__global__ void __launch_bounds__(1024)
    sum_slots_kernel(const Slot* slots, int count, std::int64_t columns, int joined_rows, double* sums,
                     std::ptrdiff_t member_stride) {
  const int joined = kJoined ? joined_rows : 1;
  cuda::move_to_member(member_stride, slots, sums);
  constexpr int kRounds = (kSumSlots + 31) / 32;
  __shared__ double shared[32][33];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const std::int64_t n = columns / 2, pitch = columns * joined;
  const Slot* const from = slots + column + (column < n ? 0 : n * (joined - 1));
  double sum = 0;
  for (int row = 0; row < joined; ++row) {
    Slot values[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int slot = int(threadIdx.y) + i * 32;
      values[i] = slot < count && column < columns ? from[slot * pitch + row * n] : 0;
    }
#pragma unroll
    for (const Slot value : values) sum += value;
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  // After this exchange through shared memory, a warp has all sums of one column and adds them up
  // by shuffles.
  sum = shared[threadIdx.x][threadIdx.y];
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  const std::int64_t of_warp = std::int64_t{blockIdx.x} * 32 + threadIdx.y;
  if (threadIdx.x == 0 && of_warp < columns) sums[of_warp] = sum;
}

template <typename T>
__global__ void repack_kernel(const T* in, std::int64_t in_pitch, bool transpose, T* out,
                              std::int64_t out_pitch, std::int64_t rows, std::int64_t columns,
                              std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, in, out);
  __shared__ T tile[32][33];
  const std::int64_t row0 = std::int64_t{blockIdx.x} * 32;
  for (std::int64_t column0 = std::int64_t{blockIdx.y} * 32; column0 < columns; column0 += gridDim.y * 32) {
    if (!transpose) {
      for (int i = threadIdx.y; i < 32; i += 8)
        if (row0 + i < rows && column0 + threadIdx.x < columns)
          out[(row0 + i) * out_pitch + column0 + threadIdx.x] =
              in[(row0 + i) * in_pitch + column0 + threadIdx.x];
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

// Copies rows of 2-byte elements to rows whose pitch is a multiple of 8 elements, which TMA
// requires, and fills the rest of each row with zeros. Threads read aligned words, except near the
// end of a row. If a row starts inside a word, they shift the words.
__global__ void widen_rows_kernel(const std::uint16_t* in, std::int64_t in_pitch, std::uint16_t* out,
                                  std::int64_t out_pitch, std::int64_t rows, std::int64_t columns,
                                  std::ptrdiff_t member_stride) {
  cuda::move_to_member(member_stride, in, out);
  const std::int64_t per_row = out_pitch / 8, count = rows * per_row;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / per_row, column = (i - row * per_row) * 8;
    const std::uint16_t* from = in + row * in_pitch + column;
    union {
      std::uint16_t elements[8];
      std::uint32_t words[4];
      uint4 all;
    } run;
    if (column + 10 <= columns) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(from);
      const auto* aligned = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
      const unsigned shift = address % 4 * 8;
      std::uint32_t low = aligned[0];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t high = j < 3 || shift != 0 ? aligned[j + 1] : 0;
        run.words[j] = __funnelshift_r(low, high, shift);
        low = high;
      }
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j) run.elements[j] = column + j < columns ? from[j] : std::uint16_t{0};
    }
    *reinterpret_cast<uint4*>(out + row * out_pitch + column) = run.all;
  }
}

}  // namespace

void sum_partials(const Epilogue& epilogue, const float* partial, int splits, std::int64_t m, std::int64_t n,
                  std::int64_t pitch, cudaStream_t stream, MemberLayout members) {
  const std::int64_t quads = m * (pitch / 4);
  const auto launch = [&]<int slices>(std::integral_constant<int, slices>) {
    const std::int64_t blocks =
        std::min<std::int64_t>(ceil_div(quads * slices, 256), kReferenceGpu.multiprocessors * 32);
    cuda::launch(sum_partials_kernel<slices>, unsigned(blocks), 256, Stream(stream), members, epilogue,
                 partial, splits, m, n, pitch);
  };
  // With few elements, one thread per four elements would leave most of the GPU idle. So 16 threads
  // divide the splits of four elements among themselves.
  if (splits >= 16 && quads < 64 * 1024)
    launch(std::integral_constant<int, 16>{});
  else
    launch(std::integral_constant<int, 1>{});
}

std::size_t slot_elements(std::int64_t n, int slots) { return std::size_t(slots) * 2 * std::size_t(n); }

void sum_columns(const Epilogue& epilogue, std::int64_t m, std::int64_t n, float* slots, cudaStream_t stream,
                 MemberLayout members) {
  cuda::launch(sum_columns_kernel, kSumSlots, dim3(32, 8), Stream(stream), members, epilogue, m, n, slots);
}

template <typename Slot>
void sum_slots(const Slot* slots, int count, std::int64_t n, double* sums, cudaStream_t stream,
               MemberLayout members, int joined) {
  cuda::launch(joined > 1 ? sum_slots_kernel<Slot, true> : sum_slots_kernel<Slot, false>,
               unsigned(ceil_div(2 * n, 32)), dim3(32, 32), Stream(stream), members, slots, count, 2 * n,
               joined, sums);
}
template void sum_slots(const float*, int, std::int64_t, double*, cudaStream_t, MemberLayout, int);
template void sum_slots(const double*, int, std::int64_t, double*, cudaStream_t, MemberLayout, int);

void repack(const void* in, std::int64_t in_pitch, bool transpose, void* out, std::int64_t out_pitch,
            std::int64_t out_rows, std::int64_t out_columns, std::size_t element_bytes, cudaStream_t stream,
            MemberLayout members) {
  if (element_bytes == 2 && !transpose && out_pitch % 8 == 0) {
    const std::int64_t blocks =
        std::min<std::int64_t>(ceil_div(out_rows * out_pitch / 8, 256), kReferenceGpu.multiprocessors * 16);
    cuda::launch(widen_rows_kernel, unsigned(blocks), 256, Stream(stream), members,
                 static_cast<const std::uint16_t*>(in), in_pitch, static_cast<std::uint16_t*>(out), out_pitch,
                 out_rows, out_columns);
    return;
  }
  const dim3 grid(unsigned(ceil_div(out_rows, 32)),
                  unsigned(std::min<std::int64_t>(ceil_div(out_columns, 32), 65535)));
  const auto launch = [&]<typename T>(T) {
    cuda::launch(repack_kernel<T>, grid, dim3(32, 8), Stream(stream), members, static_cast<const T*>(in),
                 in_pitch, transpose, static_cast<T*>(out), out_pitch, out_rows, out_columns);
  };
  element_bytes == 2 ? launch(std::uint16_t{}) : launch(std::uint32_t{});
}

}  // namespace convoy::kernels::gemm
