// The mma_sync kernel. An operand is a plain matrix (gemm), or images seen through the windows of a
// filter (convolution). Each operand type names a Carrier, a class that copies the operand to
// shared memory, one pipeline stage after the other. Device code.
//
// A stage of an operand holds `extent` rows of A (or columns of B) and `depth` values of k. In
// shared memory it is [extent][depth] if k is contiguous in the operand, else [depth][extent]. Rows
// are padded to avoid bank conflicts.
#pragma once

#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/common/epilogue.cuh"
#include "kernels/gemm/common/pipeline.cuh"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {

// The shape of a pipeline stage of one operand in shared memory.
template <typename T, bool k_contiguous_, int extent_>
struct Side {
  static constexpr bool k_contiguous = k_contiguous_;
  static constexpr int extent = extent_, depth = 64 / int(sizeof(T)), vector = 16 / int(sizeof(T));
  static constexpr int lines = k_contiguous ? extent : depth, width = k_contiguous ? depth : extent;
  static constexpr int pad = k_contiguous || sizeof(T) == 2 ? 16 / int(sizeof(T)) : 8;
  static constexpr int pitch = width + pad, elements = lines * pitch;
};

// Copies one operand to shared memory, one pipeline stage after the other. Elements outside the
// matrix become zero.
template <class Operand, class S, int threads, bool vectors>
class MatrixCarrier {
  using T = typename Operand::T;

 public:
  __device__ MatrixCarrier(const Operand& operand, std::ptrdiff_t member_stride, std::int64_t first,
                           std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand),
        data_(cuda::of_member(operand.data, member_stride)),
        first_(first),
        k_(k_begin),
        k_end_(k_end) {
    const std::int64_t row = S::k_contiguous ? first + line() : k_begin + line();
    const std::int64_t column = S::k_contiguous ? k_begin + offset() : first + offset();
    source_ = data_ + row * operand.pitch + column;
    const std::int64_t left = operand.extent - (S::k_contiguous ? first + line() : column);
    left_ = left < 0 ? 0 : left > S::extent ? S::extent : int(left);
  }

  __device__ void fetch(T* to) {
    if (vectors && k_ + S::depth <= k_end_)
      fetch_vectors(to);
    else
      fetch_elements(to);
    source_ += S::k_contiguous ? S::depth : S::depth * operand_.pitch;
    k_ += S::depth;
  }

 private:
  static constexpr int kPerLine = S::width / S::vector, kLinesAtOnce = threads / kPerLine;
  static constexpr int kCount = S::lines / kLinesAtOnce;
  static_assert(kCount > 0 && kCount * kLinesAtOnce == S::lines);

  __device__ static int line() { return int(threadIdx.x) / kPerLine; }
  __device__ static int offset() { return int(threadIdx.x) % kPerLine * S::vector; }

  __device__ void fetch_vectors(T* to) const {
    const std::int64_t step = std::int64_t{kLinesAtOnce} * operand_.pitch;
    const T* source = source_;
    T* target = to + line() * S::pitch + offset();
#pragma unroll
    for (int i = 0; i < kCount; ++i, source += step) {
      const int elements =
          S::k_contiguous ? (i * kLinesAtOnce < left_ ? S::vector : 0) : min(left_, S::vector);
      copy_async<16>(target + i * kLinesAtOnce * S::pitch, elements > 0 ? source : data_,
                     elements * int(sizeof(T)));
    }
  }
  __device__ void fetch_elements(T* to) const {
#pragma unroll 1
    for (int element = threadIdx.x; element < S::lines * S::width; element += threads) {
      const int line = element / S::width, offset = element % S::width;
      const std::int64_t along = first_ + (S::k_contiguous ? line : offset),
                         k = k_ + (S::k_contiguous ? offset : line);
      const std::int64_t index = S::k_contiguous ? along * operand_.pitch + k : k * operand_.pitch + along;
      to[line * S::pitch + offset] = along < operand_.extent && k < k_end_ ? data_[index] : T{};
    }
  }

  const Operand operand_;
  const T* const data_;
  const std::int64_t first_;
  std::int64_t k_;
  const std::int64_t k_end_;
  const T* source_;
  // The number of rows (A) or columns (B) from this thread's first one to the end of the matrix.
  int left_;
};

// A plain matrix as an operand. Its Carrier copies the next values of k to shared memory for each
// pipeline stage.
template <typename T_, bool k_contiguous_>
struct MatrixOperand {
  using T = T_;
  static constexpr bool k_contiguous = k_contiguous_;
  template <class S, int threads, bool vectors>
  using Carrier = MatrixCarrier<MatrixOperand, S, threads, vectors>;
  const T* data;
  std::int64_t pitch;
  std::int64_t extent;  // number of rows (A) or columns (B)
};

// Loads a fragment of A for mma.sync: 16 rows from `row` on and 32 bytes of k from `k` on.
template <class S, typename T>
__device__ inline void load_a(Word (&words)[4], const T* stage, int row, int k, int lane) {
  if constexpr (sizeof(T) == 2) {
    if constexpr (S::k_contiguous)
      load_matrices<false>(words, stage + (row + lane % 16) * S::pitch + k + lane / 16 * 8);
    else
      load_matrices<true>(words, stage + (k + lane / 16 * 8 + lane % 8) * S::pitch + row + lane / 8 % 2 * 8);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + lane / 4 + i % 2 * 8, c = k + lane % 4 + i / 2 * 4;
      words[i] = __float_as_uint(stage[S::k_contiguous ? r * S::pitch + c : c * S::pitch + r]);
    }
  }
}

// Loads two fragments of B for mma.sync, of 8 columns each, from `column` on.
template <class S, typename T>
__device__ inline void load_b(Word (&words)[4], const T* stage, int column, int k, int lane) {
  if constexpr (sizeof(T) == 2) {
    const int half = lane / 8 % 2 * 8, block = lane / 16 * 8;
    if constexpr (S::k_contiguous)
      load_matrices<false>(words, stage + (column + block + lane % 8) * S::pitch + k + half);
    else
      load_matrices<true>(words, stage + (k + half + lane % 8) * S::pitch + column + block);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = column + lane / 4 + i / 2 * 8, c = k + lane % 4 + i % 2 * 4;
      words[i] = __float_as_uint(stage[S::k_contiguous ? r * S::pitch + c : c * S::pitch + r]);
    }
  }
}

template <typename T_, int columns_, bool vectors_>
struct MmaTile {
  using T = T_;
  static constexpr bool vectors = vectors_;
  // If the tile is wide enough, a warp computes 64 x 64 elements, which takes the fewest reads of
  // shared memory.
  static constexpr int rows = 128, columns = columns_, warp_columns = columns / 2, stages = 4;
  static constexpr int warps_across = 2, threads = 128, blocks_per_multiprocessor = columns == 128 ? 2 : 3;
};

template <class C, class OperandA, class OperandB>
__global__ __launch_bounds__(C::threads, C::blocks_per_multiprocessor) void mma_sync_kernel(
    const __grid_constant__ OperandA a, const __grid_constant__ OperandB b, std::int64_t k, TileOrder order,
    Epilogue whole, std::ptrdiff_t member_stride) {
  using T = typename C::T;
  using A = Side<T, OperandA::k_contiguous, C::rows>;
  using B = Side<T, OperandB::k_contiguous, C::columns>;
  constexpr int kStage = A::elements + B::elements, kStep = 32 / int(sizeof(T));
  extern __shared__ __align__(128) unsigned char shared[];
  T* ring = reinterpret_cast<T*>(shared);
  // Find this block's tile and range of k, and make the carriers of its operands.
  const TileOrder::Position position = order.at(blockIdx.x);
  const std::int64_t row0 = position.row * C::rows, column0 = position.column * C::columns;
  const std::int64_t k_begin = order.k_begin(position.split), k_end = order.k_end(position.split, k);
  const int count = int((k_end - k_begin + A::depth - 1) / A::depth);
  typename OperandA::template Carrier<A, C::threads, C::vectors> carrier_a(a, member_stride, row0, k_begin,
                                                                           k_end);
  typename OperandB::template Carrier<B, C::threads, C::vectors> carrier_b(b, member_stride, column0, k_begin,
                                                                           k_end);
  const auto fetch = [&](int block) {
    T* stage = ring + block % C::stages * kStage;
    carrier_a.fetch(stage);
    carrier_b.fetch(stage + A::elements);
  };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = warp / C::warps_across * 64, column = warp % C::warps_across * C::warp_columns;
  constexpr int kAcross = C::warp_columns / 8;
  float sums[4][kAcross][4] = {};
  // Prologue: fill all stages but one.
  for (int block = 0; block < C::stages - 1; ++block) {
    if (block < count) fetch(block);
    copies_commit();
  }
  // Main loop: wait for a stage, refill the stage that was read in the previous iteration,
  // multiply.
  for (int block = 0; block < count; ++block) {
    copies_wait<C::stages - 2>();
    __syncthreads();
    if (block + C::stages - 1 < count) fetch(block + C::stages - 1);
    copies_commit();
    const T* stage = ring + block % C::stages * kStage;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      Word from_a[4][4], from_b[kAcross / 2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) load_a<A>(from_a[i], stage, row + i * 16, step * kStep, lane);
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j)
        load_b<B>(from_b[j], stage + A::elements, column + j * 16, step * kStep, lane);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          multiply_tile<T>(sums[i][j], from_a[i], from_b[j / 2][j % 2 * 2], from_b[j / 2][j % 2 * 2 + 1]);
    }
  }

  // Epilogue: finish and store the sums.
  const Epilogue epilogue = epilogue_of_split(whole, position.split, a.extent, order.partial_pitch);
  const std::ptrdiff_t offset = member_stride * std::ptrdiff_t(blockIdx.z);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t r = row0 + row + i * 16 + half * 8 + lane / 4;
        const std::int64_t c = column0 + column + j * 8 + lane % 4 * 2;
        const float run[2] = {sums[i][j][half * 2], sums[i][j][half * 2 + 1]};
        if (r < a.extent && c < b.extent) epilogue.store_run(run, r, c, b.extent, offset);
      }
}

// Starts the kernel of a tile shape on two operands.
template <class C, class OperandA, class OperandB>
void start_mma_sync(const OperandA& a, const OperandB& b, std::int64_t k, const TileOrder& order,
                    const Epilogue& epilogue, cudaStream_t stream, MemberLayout members) {
  using T = typename C::T;
  constexpr int kBytes = C::stages * int(sizeof(T)) *
                         (Side<T, OperandA::k_contiguous, C::rows>::elements +
                          Side<T, OperandB::k_contiguous, C::columns>::elements);
  auto* kernel = mma_sync_kernel<C, OperandA, OperandB>;
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  cuda::launch(kernel, unsigned(order.blocks()), C::threads, kBytes, Stream(stream), members, a, b, k, order,
               epilogue);
}

inline constexpr int kMmaColumns[] = {128, 64};

}  // namespace convoy::kernels::gemm
