// Third rung, fp32 without tensor cores: a block computes a tile of C, a warp 64 x 32 of it, a thread 8 x 8 in
// registers. Operands pass through a ring of shared-memory stages filled by cp.async while earlier stages are
// multiplied, and through two sets of registers, so that the arithmetic units never wait.
//
// Shared memory holds both operands with m or n contiguous: [depth][rows + 4]. An operand that has k contiguous
// is transposed on its way by 4-byte copies, whose rows of 4 words padding spreads over all banks.
#include <array>

#include "kernels/device/cuda_error.h"
#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/pipeline.cuh"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

struct Operand {
  const float* data;
  std::int64_t pitch;
  std::int64_t extent;  // m or n
  bool vectors;         // 16-byte copies are possible
};

template <int rows_, int columns_, int stages_>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, stages = stages_, depth = 8;
  static constexpr int warps_down = rows / 64, warps_across = columns / 32;
  static constexpr int threads = warps_down * warps_across * 32;
  static constexpr int pitch_a = rows + 4, pitch_b = columns + 4;
  static constexpr int stage_floats = depth * (pitch_a + pitch_b);
  static constexpr int shared_bytes = stages * stage_floats * int(sizeof(float));
  static constexpr int blocks_per_multiprocessor = threads >= 512 ? 1 : 512 / threads;
};

// One operand's copies into a stage, with the addresses kept from stage to stage.
template <bool k_contiguous, int extent, int threads, int depth>
class Copier {
 public:
  __device__ Copier(const Operand& operand, std::int64_t first, std::int64_t k_begin, std::int64_t k_end)
      : operand_(operand), first_(first), k_(k_begin), k_end_(k_end) {}

  // Starts the copies of the next `depth` values of k; what lies outside the matrix becomes zero.
  __device__ void next(float* to) {
    constexpr int kPitch = extent + 4;
    if constexpr (k_contiguous) {
      // Eight values of k by four rows a warp: whole sectors read, every bank written once.
      constexpr int kRowsAtOnce = threads / depth;
      const int k = threadIdx.x % depth, row = threadIdx.x / depth;
#pragma unroll
      for (int i = 0; i < extent / kRowsAtOnce; ++i) {
        const std::int64_t r = first_ + row + i * kRowsAtOnce;
        const bool there = r < operand_.extent && k_ + k < k_end_;
        copy_async<4>(to + k * kPitch + row + i * kRowsAtOnce,
                      there ? operand_.data + r * operand_.pitch + k_ + k : operand_.data, there ? 4 : 0);
      }
    } else if (operand_.vectors) {
      constexpr int kQuads = extent / 4, kPieces = kQuads * depth;
#pragma unroll
      for (int i = 0; i < (kPieces + threads - 1) / threads; ++i) {
        const int piece = int(threadIdx.x) + i * threads, k = piece / kQuads, column = piece % kQuads * 4;
        if (kPieces % threads != 0 && piece >= kPieces) break;
        const std::int64_t c = first_ + column, left = operand_.extent - c;
        const int bytes = k_ + k >= k_end_ || left <= 0 ? 0 : left >= 4 ? 16 : int(left) * 4;
        copy_async<16>(to + k * kPitch + column,
                       bytes > 0 ? operand_.data + (k_ + k) * operand_.pitch + c : operand_.data, bytes);
      }
    } else {
      for (int piece = threadIdx.x; piece < extent * depth; piece += threads) {
        const int k = piece / extent, column = piece % extent;
        const bool there = k_ + k < k_end_ && first_ + column < operand_.extent;
        copy_async<4>(to + k * kPitch + column,
                      there ? operand_.data + (k_ + k) * operand_.pitch + first_ + column : operand_.data,
                      there ? 4 : 0);
      }
    }
    k_ += depth;
  }

 private:
  const Operand operand_;
  const std::int64_t first_;
  std::int64_t k_;
  const std::int64_t k_end_;
};

// The operands of one value of k: rows lane_row * 4 + {0..3} and 32 further, columns likewise 16 further.
struct Fragment {
  float a[8], b[8];
  __device__ void load(const float* from_a, const float* from_b) {
    *reinterpret_cast<float4*>(a) = *reinterpret_cast<const float4*>(from_a);
    *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<const float4*>(from_a + 32);
    *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(from_b);
    *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<const float4*>(from_b + 16);
  }
};

__device__ void multiply(float (&sums)[8][8], const Fragment& fragment) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[i][j] = fmaf(fragment.a[i], fragment.b[j], sums[i][j]);
}

template <class T, bool a_k_contiguous, bool b_k_contiguous>
__global__ __launch_bounds__(T::threads, T::blocks_per_multiprocessor) void register_tiles_kernel(
    Operand a, Operand b, std::int64_t k, TileOrder order, Epilogue whole) {
  extern __shared__ float ring[];
  const TileOrder::Position position = order.at(blockIdx.x);
  const std::int64_t row0 = position.row * T::rows, column0 = position.column * T::columns;
  const std::int64_t k_begin = order.k_begin(position.split), k_end = order.k_end(position.split, k);
  Copier<a_k_contiguous, T::rows, T::threads, T::depth> copy_a(a, row0, k_begin, k_end);
  Copier<b_k_contiguous, T::columns, T::threads, T::depth> copy_b(b, column0, k_begin, k_end);
  const auto copy_stage = [&](int stage) {
    copy_a.next(ring + stage * T::stage_floats);
    copy_b.next(ring + stage * T::stage_floats + T::depth * T::pitch_a);
  };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = warp / T::warps_across * 64 + lane / 4 * 4, column = warp % T::warps_across * 32 + lane % 4 * 4;
  const int count = int((k_end - k_begin + T::depth - 1) / T::depth);
#pragma unroll
  for (int stage = 0; stage < T::stages - 1; ++stage) {
    if (stage < count) copy_stage(stage);
    copies_commit();
  }
  float sums[8][8] = {};
  Fragment fragments[2];
  int reading = 0, writing = T::stages - 1;
  copies_wait<T::stages - 2>();
  __syncthreads();
  fragments[0].load(ring + row, ring + T::depth * T::pitch_a + column);
  for (int block = 0; block < count; ++block) {
    const float* stage_a = ring + reading * T::stage_floats + row;
    const float* stage_b = ring + reading * T::stage_floats + T::depth * T::pitch_a + column;
    reading = reading + 1 == T::stages ? 0 : reading + 1;
#pragma unroll
    for (int i = 0; i < T::depth; ++i) {
      if (i == 0) {
        if (block + T::stages - 1 < count) copy_stage(writing);
        copies_commit();
        writing = writing + 1 == T::stages ? 0 : writing + 1;
      }
      if (i == T::depth - 1) {
        copies_wait<T::stages - 2>();
        __syncthreads();
        stage_a = ring + reading * T::stage_floats + row;
        stage_b = ring + reading * T::stage_floats + T::depth * T::pitch_a + column;
      }
      const int next = (i + 1) % T::depth;
      fragments[(i + 1) % 2].load(stage_a + next * T::pitch_a, stage_b + next * T::pitch_b);
      multiply(sums, fragments[i % 2]);
    }
  }

  const Epilogue epilogue = epilogue_of_piece(whole, position.split, a.extent, order.partial_pitch);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::int64_t r = row0 + row + i / 4 * 32 + i % 4;
    if (r >= a.extent) continue;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const float run[4] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
      epilogue.store_run(run, r, column0 + column + j * 4, b.extent);
    }
  }
}

struct Shape {
  const char* name;
  int rows, columns;
};
constexpr Shape kShapes[] = {{"128x128", 128, 128}, {"128x64", 128, 64}, {"64x64", 64, 64}, {"256x128", 256, 128}};
using Tiles = std::tuple<Tile<128, 128, 4>, Tile<128, 64, 4>, Tile<64, 64, 4>, Tile<256, 128, 4>>;

template <class T>
void launch(const Problem& p, const Operand& a, const Operand& b, const TileOrder& order, const Epilogue& epilogue,
            cudaStream_t stream) {
  const auto start = [&](auto* kernel) {
    CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::shared_bytes));
    kernel<<<unsigned(order.blocks()), T::threads, T::shared_bytes, stream>>>(a, b, p.k, order, epilogue);
    CONVOY_CUDA(cudaGetLastError());
  };
  if (p.transpose_a)
    p.transpose_b ? start(register_tiles_kernel<T, false, true>) : start(register_tiles_kernel<T, false, false>);
  else
    p.transpose_b ? start(register_tiles_kernel<T, true, true>) : start(register_tiles_kernel<T, true, false>);
}

bool supports_registers(const Problem& p) { return p.math == Math::fp32; }

// Cycles of one multiprocessor: 128 multiply-adds each, blocks side by side count as one.
double expected_time(const Problem& p, const Shape& shape, int splits) {
  const double tiles = double(ceil_div(p.m, shape.rows) * ceil_div(p.n, shape.columns)) * splits;
  const double size = double(shape.rows) * shape.columns;
  const double together = std::max(1.0, 2.0 * 128 * 128 / size);
  const double waves = std::ceil(tiles / (device_facts().multiprocessors * together));
  const double depth = double(p.k) / splits + 60;
  const double rate = size >= 128 * 128 ? 0.92 : size >= 128 * 64 ? 0.88 : 0.75;
  const double compute = waves * together * depth * size / 128 / rate / 1.85e3;
  const double memory = p.bytes() / 4.0e6;
  const double pieces = splits == 1 ? 0 : 2.5 + 2.0 * double(partial_elements(p, splits)) * 4 / 4.0e6;
  return std::max(compute, memory) + pieces;
}

struct Workspace {
  float *partial, *slots;
  std::size_t bytes;
};
Workspace carve(const Problem& p, int splits, void* base) {
  Carver carver(base);
  auto* partial = carver.take<float>(partial_elements(p, splits));
  auto* slots = carver.take<float>(p.column_sums ? slot_elements(p.n, kSumSlots) : 0);
  return {partial, slots, carver.used()};
}

std::vector<Plan> register_candidates(const Problem& p) {
  return tile_candidates(
      Rung::register_tiles, int(std::size(kShapes)), p, 64,
      [&](int tile, int splits) { return expected_time(p, kShapes[tile], splits); },
      [&](int tile) { return ceil_div(p.m, kShapes[tile].rows) * ceil_div(p.n, kShapes[tile].columns); },
      [&](int splits) { return carve(p, splits, nullptr).bytes; });
}

Launch bind_registers(const Problem& p, const Plan& plan, const Buffers& buffers) {
  const auto operand = [](const void* data, std::int64_t pitch, std::int64_t extent) {
    const bool vectors = pitch % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
    return Operand{static_cast<const float*>(data), pitch, extent, vectors};
  };
  const Operand a = operand(buffers.a, p.lda, p.m), b = operand(buffers.b, p.ldb, p.n);
  const Shape& shape = kShapes[plan.tile];
  const TileOrder order = tile_order(p, shape.rows, shape.columns, 8, plan.splits);
  const Workspace workspace = carve(p, plan.splits, buffers.workspace);
  const Epilogue epilogue = epilogue_of(p, buffers);
  Epilogue first = epilogue;
  if (plan.splits > 1) first.partial = workspace.partial;
  return [=](Stream on) {
    const cudaStream_t stream = as_stream(on);
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      ((plan.tile == int(i) ? launch<std::tuple_element_t<i, Tiles>>(p, a, b, order, first, stream) : void()), ...);
    }(std::make_index_sequence<std::tuple_size_v<Tiles>>{});
    finish_tiles(p, plan, epilogue, workspace.partial, workspace.slots, buffers, stream);
  };
}

}  // namespace

const RungEntry& register_tiles_rung() {
  static const RungEntry entry = [] {
    RungEntry made{supports_registers, register_candidates, bind_registers, {}};
    for (const auto& shape : kShapes) made.tiles.push_back(shape.name);
    return made;
  }();
  return entry;
}

}  // namespace convoy::kernels::gemm
