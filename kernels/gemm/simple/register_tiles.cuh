// The register_tiles kernel. Each operand type names a Carrier, a class that copies the operand to
// shared memory, one pipeline stage after the other. Device code.
//
// In shared memory, a stage of an operand is [depth][extent + 4], with m or n contiguous. `extent`
// is a number of rows of A or columns of B, and `depth` is a number of values of k. The 4 elements
// of padding avoid bank conflicts. If k is contiguous in device memory, 4-byte copies transpose the
// operand. A warp then reads eight values of k in four rows, so that it uses whole sectors of
// device memory.
#pragma once

#include <tuple>
#include <utility>

#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/common/pipeline.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {

template <int rows_, int columns_, int thread_columns_>
struct RegisterTile {
  static constexpr int rows = rows_, columns = columns_, depth = 16, stages = 2;
  static constexpr int shared_bytes = stages * depth * (rows_ + columns_ + 8) * int(sizeof(float));
  static constexpr int thread_columns = thread_columns_, warp_columns = thread_columns * 4;
  static constexpr int warps_across = columns / warp_columns;
  static constexpr int threads = rows / 64 * warps_across * 32;
  static constexpr int pitch_a = rows + 4, pitch_b = columns + 4;
  static constexpr int stage_floats = depth * (pitch_a + pitch_b);
  static constexpr int blocks_per_multiprocessor = (thread_columns == 8 ? 512 : 256) / threads;
};

// Copies one operand to shared memory, one pipeline stage after the other.
template <class Operand, int extent, int threads, int depth>
class PlaneCarrier {
  static constexpr bool k_contiguous = Operand::k_contiguous;

 public:
  __device__ PlaneCarrier(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                          std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        first_(first),
        k_(k_begin),
        k_end_(k_end) {
    source_ = k_contiguous ? data_ + (first + line()) * operand.pitch + k_begin + offset()
                           : data_ + (k_begin + line()) * operand.pitch + first + offset();
    const std::int64_t left = operand.extent - first - (k_contiguous ? line() : offset());
    left_ = left < 0 ? 0 : left > extent ? extent : int(left);
  }

  // Starts to copy the next `depth` values of k to `to`. Elements outside the matrix become zero.
  __device__ void fetch(float* to) {
    const bool whole = k_ + depth <= k_end_, inside = first_ + extent <= operand_.extent;
    const std::int64_t step = std::int64_t{kLinesAtOnce} * operand_.pitch;
    const float* source = source_;
    if (!whole || (!k_contiguous && !operand_.vectors)) {
      fetch_guarded(to);
    } else if constexpr (k_contiguous) {
      float* target = to + offset() * kPitch + line();
      if (inside) {
#pragma unroll
        for (int i = 0; i < kCount; ++i, source += step)
#pragma unroll
          for (int k = 0; k < depth; k += 8)
            copy_async<4>(target + k * kPitch + i * kLinesAtOnce, source + k);
      } else {
#pragma unroll 1
        for (int i = 0; i < kCount; ++i, source += step)
#pragma unroll
          for (int k = 0; k < depth; k += 8)
            copy_async<4>(target + k * kPitch + i * kLinesAtOnce,
                          i * kLinesAtOnce < left_ ? source + k : data_, i * kLinesAtOnce < left_ ? 4 : 0);
      }
    } else {
      const int bytes = min(left_, 4) * 4;
      if (bytes == 0) source = data_;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        copy_async<16>(to + (line() + i * kLinesAtOnce) * kPitch + offset(), source, bytes);
        if (bytes > 0) source += step;
      }
    }
    source_ += k_contiguous ? depth : depth * operand_.pitch;
    k_ += depth;
  }

 private:
  static constexpr int kPitch = extent + 4;
  // The number of threads that copy one line. A line is a stored row of the matrix in device
  // memory.
  static constexpr int kPerLine = k_contiguous ? 8 : extent / 4;
  static constexpr int kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = (k_contiguous ? extent : depth) / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == (k_contiguous ? extent : depth));

  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine * (k_contiguous ? 1 : 4); }

  __device__ void fetch_guarded(float* to) const {
#pragma unroll 1
    for (int word = threadIdx.x; word < extent * depth; word += threads) {
      const int k = k_contiguous ? word % depth : word / extent,
                along = k_contiguous ? word / depth : word % extent;
      const bool there = first_ + along < operand_.extent && k_ + k < k_end_;
      const std::int64_t index = k_contiguous ? (first_ + along) * operand_.pitch + k_ + k
                                              : (k_ + k) * operand_.pitch + first_ + along;
      copy_async<4>(to + k * kPitch + along, there ? data_ + index : data_, there ? 4 : 0);
    }
  }

  const Operand operand_;
  const float* const data_;
  const std::int64_t first_;
  std::int64_t k_;
  const std::int64_t k_end_;
  const float* source_;
  // The number of rows (A) or columns (B) from this thread's first one to the end of the matrix.
  int left_;
};

// A plain matrix as an operand. Its Carrier copies the next values of k to shared memory for each
// pipeline stage.
template <bool k_contiguous_>
struct PlaneOperand {
  static constexpr bool k_contiguous = k_contiguous_;
  template <int extent, int threads, int depth>
  using Carrier = PlaneCarrier<PlaneOperand, extent, threads, depth>;
  const float* data;
  std::int64_t pitch;
  std::int64_t extent;  // number of rows (A) or columns (B)
  bool vectors;         // 16-byte copies are possible
};

// A thread's operands for one value of k. Its eight rows are two runs of four, 32 rows apart. Its
// columns are runs of four, 16 columns apart.
template <int columns>
struct Fragment {
  float a[8], b[columns];
  __device__ void load(const float* from_a, const float* from_b) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float4*>(a + i * 4) = *reinterpret_cast<const float4*>(from_a + i * 32);
#pragma unroll
    for (int i = 0; i < columns / 4; ++i)
      *reinterpret_cast<float4*>(b + i * 4) = *reinterpret_cast<const float4*>(from_b + i * 16);
  }
};

template <int columns>
__device__ inline void multiply_fragment(float (&sums)[8][columns], const Fragment<columns>& fragment) {
  // Even rows go through the columns forwards, odd rows backwards. So each product shares an
  // operand with the product before it. This avoids register bank conflicts and makes the loop a
  // tenth faster.
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int step = 0; step < columns; ++step) {
      const int j = i % 2 == 0 ? step : columns - 1 - step;
      sums[i][j] = fmaf(fragment.a[i], fragment.b[j], sums[i][j]);
    }
}

template <class T, class OperandA, class OperandB>
__global__ __launch_bounds__(T::threads, T::blocks_per_multiprocessor) void register_tiles_kernel(
    const __grid_constant__ OperandA a, const __grid_constant__ OperandB b, std::int64_t k, TileOrder order,
    Epilogue whole, std::ptrdiff_t member_stride) {
  extern __shared__ __align__(16) float shared[];
  float(*stages)[T::stage_floats] = reinterpret_cast<float(*)[T::stage_floats]>(shared);
  constexpr int kStageB = T::depth * T::pitch_a;
  const TileOrder::Position position = order.at(blockIdx.x);
  const std::int64_t row0 = position.row * T::rows, column0 = position.column * T::columns;
  const std::int64_t k_begin = order.k_begin(position.split), k_end = order.k_end(position.split, k);
  typename OperandA::template Carrier<T::rows, T::threads, T::depth> carrier_a(a, member_stride, row0,
                                                                               k_begin, k_end);
  typename OperandB::template Carrier<T::columns, T::threads, T::depth> carrier_b(b, member_stride, column0,
                                                                                  k_begin, k_end);
  const auto fetch = [&](float* stage) {
    carrier_a.fetch(stage);
    carrier_b.fetch(stage + kStageB);
  };
  const auto arrive = [] {
    copies_wait<T::stages - 2>();
    __syncthreads();
  };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = warp / T::warps_across * 64 + lane / 4 * 4;
  const int column = warp % T::warps_across * T::warp_columns + lane % 4 * 4;
  const int count = int((k_end - k_begin + T::depth - 1) / T::depth);
  float sums[8][T::thread_columns] = {};
  Fragment<T::thread_columns> fragments[2];
  // Prologue: fill all stages but one, and load the first operands into registers.
#pragma unroll
  for (int stage = 0; stage < T::stages - 1; ++stage) {
    if (stage < count) fetch(stages[stage]);
    copies_commit();
  }
  arrive();
  fragments[0].load(stages[0] + row, stages[0] + kStageB + column);
  // Main loop: refill a stage, then multiply while the next operands are loaded into registers.
  int reading = 0, writing = T::stages - 1;
  for (int block = 0; block < count; ++block) {
    const float* current = stages[reading];
    reading = reading + 1 == T::stages ? 0 : reading + 1;
    if (block + T::stages - 1 < count) fetch(stages[writing]);
    copies_commit();
    writing = writing + 1 == T::stages ? 0 : writing + 1;
#pragma unroll
    for (int i = 0; i < T::depth; ++i) {
      if (i + 1 < T::depth) {
        fragments[(i + 1) % 2].load(current + (i + 1) * T::pitch_a + row,
                                    current + kStageB + (i + 1) * T::pitch_b + column);
      } else {
        arrive();
        fragments[0].load(stages[reading] + row, stages[reading] + kStageB + column);
      }
      multiply_fragment(sums, fragments[i % 2]);
    }
  }

  // Epilogue: finish and store the sums.
  const Epilogue epilogue = epilogue_of_split(whole, position.split, a.extent, order.partial_pitch);
  const std::ptrdiff_t offset = member_stride * std::ptrdiff_t(blockIdx.z);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::int64_t r = row0 + row + i / 4 * 32 + i % 4;
    if (r >= a.extent) continue;
#pragma unroll
    for (int j = 0; j < T::thread_columns; j += 4) {
      const float run[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
      epilogue.store_run(run, r, column0 + column + j * 4, b.extent, offset);
    }
  }
}

struct RegisterShape {
  const char* name;
  int rows, columns;
};
inline constexpr RegisterShape kRegisterShapes[] = {
    {"128x128", 128, 128}, {"128x64", 128, 64}, {"64x64", 64, 64}};
using RegisterTiles =
    std::tuple<RegisterTile<128, 128, 8>, RegisterTile<128, 64, 8>, RegisterTile<64, 64, 8>>;

// Starts the kernel of tile shape `tile` on two operands.
template <class OperandA, class OperandB>
void start_register_tiles(int tile, const OperandA& a, const OperandB& b, std::int64_t k,
                          const TileOrder& order, const Epilogue& epilogue, cudaStream_t stream,
                          MemberLayout members) {
  const auto start = [&]<class T>(T) {
    auto* kernel = register_tiles_kernel<T, OperandA, OperandB>;
    CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::shared_bytes));
    cuda::launch(kernel, unsigned(order.blocks()), T::threads, T::shared_bytes, Stream(stream), members, a, b,
                 k, order, epilogue);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((tile == int(i) ? start(std::tuple_element_t<i, RegisterTiles>{}) : void()), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<RegisterTiles>>{});
}

}  // namespace convoy::kernels::gemm
