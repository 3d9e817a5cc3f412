// Takes batch norm's sums over the columns of a matrix, in the pass that reads or writes the matrix
// first, by one launch.
#pragma once

#include "kernels/batch_norm/cuda.cuh"
#include "kernels/device/cuda_launch.cuh"

namespace convoy::kernels::cuda {

inline constexpr int kReduceThreads = 512;
// The most shared memory that store_partials() and add_partials() need.
inline constexpr int kSharedBytes = 32 * kReduceThreads;

// Sums the valid rows' values and squares per column, kRows rows a thread at a time. A Source has
// load(offset), which starts reading kWidth elements, pack(loaded, offset), which returns them, and
// moved(stride), which returns the source of the block's member.
// One that writes gets all rows.
template <typename Source>
__global__ void __launch_bounds__(kReduceThreads, 2)
    statistics(const __grid_constant__ Source of_first, const StepControl* control,
               const __grid_constant__ ColumnGrid grid, float* partials, unsigned* tickets, double* sums,
               std::ptrdiff_t member_stride) {
  const auto source = of_first.moved(member_stride);
  move_to_member(member_stride, control, partials, sums);
  tickets += blockIdx.z * grid.tiles;
  constexpr int V = Source::kWidth, kRows = Source::kRows;
  __shared__ __align__(16) char shared[kSharedBytes];
  const Place place = place_in<V>(grid);
  const std::int64_t valid = valid_rows(control, grid);
  const std::int64_t rows = !place.active ? 0 : Source::kWrites ? grid.rows : valid;
  const std::int64_t stride = std::int64_t{grid.row_blocks} * grid.height;
  float sum[2 * V] = {};
  for (std::int64_t row = std::int64_t{place.row_block} * grid.height + place.ty; row < rows;
       row += kRows * stride) {
    typename Source::Loaded loaded[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (row + k * stride < rows)
        loaded[k] = source.load((row + k * stride) * grid.channels + place.channel);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k * stride >= rows) continue;
      float value[V];
      unpack(source.pack(loaded[k], (row + k * stride) * grid.channels + place.channel), value);
      if (Source::kWrites && row + k * stride >= valid) continue;
#pragma unroll
      for (int i = 0; i < V; ++i) {
        sum[i] += value[i];
        sum[V + i] = fmaf(value[i], value[i], sum[V + i]);
      }
    }
  }
  store_partials<V, kReduceThreads>(sum, grid, place, reinterpret_cast<float*>(shared), partials);
  if (!draws_last_ticket(&tickets[place.first / (grid.tile * V)], static_cast<unsigned>(grid.row_blocks)))
    return;
  auto* total = reinterpret_cast<double*>(shared);
  add_partials<V, kReduceThreads>(partials, grid, place, total);
  for (int i = threadIdx.x; i < place.columns; i += kReduceThreads) {
    sums[place.first + i] = total[i];
    sums[grid.channels + place.first + i] = total[place.columns + i];
  }
}

inline std::size_t partial_bytes(const ColumnGrid& grid) {
  return sizeof(float) * 2 * static_cast<std::size_t>(grid.channels) *
         static_cast<std::size_t>(grid.row_blocks);
}

// Returns the grid for tensors of this type, in the packing that with_packing(type, {e.c}) chooses.
inline ColumnGrid reduce_grid(const ImageExtents& e, DType type, int blocks, int rows_a_thread) {
  const int wide = type == DType::bf16 ? kPackWidth<bf16> : kPackWidth<float>;
  return column_grid(e.n * e.pixels(), e.pixels(), e.c, e.c % wide == 0 ? wide : 1, kReduceThreads,
                     rows_a_thread, blocks);
}

// Returns the grid of statistics(), which has two blocks a multiprocessor.
inline ColumnGrid statistics_grid(const ImageExtents& e, DType type, int rows_a_thread) {
  return reduce_grid(e, type, 2 * kMultiprocessors, rows_a_thread);
}

}  // namespace convoy::kernels::cuda
