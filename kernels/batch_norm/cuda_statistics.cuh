// Computes the sums that batch norm needs in one launch: for each column of a matrix, the sum of
// its values and the sum of their squares. The same launch may also compute the matrix, if it is
// not in memory yet.
#pragma once

#include "kernels/batch_norm/cuda.cuh"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_shifted_sums.cuh"

namespace convoy::kernels::cuda {

inline constexpr int kReduceThreads = 512;
// The most shared memory that store_partials() and add_partials() need, in bytes.
inline constexpr int kSharedBytes = 32 * kReduceThreads;

// Adds up two sums per column over all threads, blocks and joined pixels. Each thread passes the
// sums of its own columns. The order of additions depends only on the shape. When the sums of the
// block's column i are complete, scaled(i, second sum) returns the value that replaces the second
// sum. At the end, store(channel, first sum, second sum) is called for each channel. Sum is the
// type of the partial sums: float or double.
template <int N, typename Sum, typename Scaled, typename Store>
__device__ __forceinline__ void finish_sums(Sum (&sum)[N], const ColumnGrid& grid, const Place& place,
                                            char* shared, Sum* partials, unsigned* tickets, Scaled scaled,
                                            Store store) {
  constexpr int V = N / 2;
  store_partials<V, kReduceThreads>(sum, grid, place, reinterpret_cast<Sum*>(shared), partials);
  if (!draws_last_ticket(&tickets[place.first / (grid.tile * V)], static_cast<unsigned>(grid.row_blocks)))
    return;
  auto* total = reinterpret_cast<double*>(shared);
  add_partials<V, kReduceThreads>(partials, grid, place, total);
  auto* const of_columns = reinterpret_cast<double*>(partials + grid.partials());
  for (int i = threadIdx.x; i < place.columns; i += kReduceThreads) {
    const int column = place.first + i;
    const double first = total[i], second = scaled(i, total[place.columns + i]);
    if (grid.joins_pixels())
      of_columns[column] = first, of_columns[grid.columns + column] = second;
    else
      store(column, first, second);
  }
  if (!grid.joins_pixels() || !draws_last_ticket(&tickets[grid.tiles], static_cast<unsigned>(grid.tiles)))
    return;
  for (int channel = threadIdx.x; channel < grid.channels; channel += kReduceThreads) {
    double first = 0, second = 0;
    for (int column = channel; column < grid.columns; column += grid.channels)
      first += of_columns[column], second += of_columns[grid.columns + column];
    store(channel, first, second);
  }
}

// The type of the partial sums of elements of type T.
template <typename T>
using StatisticsSum = MomentSum<static_cast<int>(sizeof(T))>;

// For each column, adds up the values and their squares over the valid rows. Sums of f32 are
// shifted (cuda_shifted_sums.cuh). A Source supplies the matrix:
//   Element               the type of the elements
//   moved(stride)         returns the Source of the member (kernel.h) that the block computes
//   load(offset)          starts reading kWidth elements; a thread starts kRows loads at once
//   pack(loaded, offset)  returns these elements; if kWrites is set, also stores them
// With kWrites, load() and pack() are called for all rows and not only for the valid ones.
template <typename Source>
__global__ void __launch_bounds__(kReduceThreads, 2)
    statistics(const __grid_constant__ Source of_first, const StepControl* control,
               const __grid_constant__ ColumnGrid grid, StatisticsSum<typename Source::Element>* partials,
               unsigned* tickets, double* sums, std::ptrdiff_t member_stride) {
  const auto source = of_first.moved(member_stride);
  move_to_member(member_stride, control, partials, sums);
  tickets += blockIdx.z * grid.tickets();
  constexpr int V = Source::kWidth, kRows = Source::kRows;
  __shared__ __align__(16) char shared[kSharedBytes];
  const Place place = place_in<V>(grid);
  const std::int64_t valid = valid_rows(control, grid);
  const std::int64_t rows = !place.active ? 0 : Source::kWrites ? grid.rows : valid;
  const std::int64_t stride = std::int64_t{grid.row_blocks} * grid.height;
  constexpr bool kShifts = kShiftsSums<static_cast<int>(sizeof(typename Source::Element))>;
  float sum[2 * V] = {}, shift[V] = {};
  int count = 0;  // the number of rows in `sum`
  for (std::int64_t row = std::int64_t{place.row_block} * grid.height + place.ty; row < rows;
       row += kRows * stride) {
    typename Source::Loaded loaded[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (row + k * stride < rows) loaded[k] = source.load((row + k * stride) * grid.columns + place.column);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k * stride >= rows) continue;
      float value[V];
      unpack(source.pack(loaded[k], (row + k * stride) * grid.columns + place.column), value);
      if (Source::kWrites && row + k * stride >= valid) continue;
      if (kShifts && count++ == 0)
#pragma unroll
        for (int i = 0; i < V; ++i) shift[i] = value[i];
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (kShifts) value[i] -= shift[i];
        sum[i] += value[i];
        sum[V + i] = fmaf(value[i], value[i], sum[V + i]);
      }
    }
  }
  StatisticsSum<typename Source::Element> total[2 * V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    total[i] = sum[i], total[V + i] = sum[V + i];
    if constexpr (kShifts) remove_shift(total[i], total[V + i], count, shift[i]);
  }
  finish_sums(
      total, grid, place, shared, partials, tickets, [](int, double squares) { return squares; },
      [&](int channel, double values, double squares) {
        sums[channel] = values;
        sums[grid.channels + channel] = squares;
      });
}

// Returns the bytes that finish_sums() needs for partial sums of `sum_bytes` each.
inline std::size_t partial_bytes(const ColumnGrid& grid, std::size_t sum_bytes) {
  const std::size_t of_columns = grid.joins_pixels() ? 2 * static_cast<std::size_t>(grid.columns) : 0;
  return sum_bytes * static_cast<std::size_t>(grid.partials()) + sizeof(double) * of_columns;
}
inline std::size_t statistics_bytes(const ColumnGrid& grid, DType type) {
  return partial_bytes(grid,
                       type == DType::bf16 ? sizeof(StatisticsSum<bf16>) : sizeof(StatisticsSum<float>));
}

// Returns the grid of statistics(), with at most two blocks per multiprocessor.
inline ColumnGrid statistics_grid(const ImageExtents& e, DType type, int rows_a_thread) {
  return column_grid(e, type, kReduceThreads, rows_a_thread, 2 * kMultiprocessors);
}

}  // namespace convoy::kernels::cuda
