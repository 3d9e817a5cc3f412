// Computes column sums of C for batch norm while C is in shared memory, in TMA boxes of 64 rows by
// 128 bytes (sm90_staging.cuh). A column gets two sums: of its elements, and of the products of its
// elements with those of a second box. If the second box is the same box, the products are squares.
//
// A consumer warpgroup keeps the sums in registers as long as its tiles are in the same columns of
// C. Then it adds them to its own slot in device memory. The order of additions is fixed, so every
// run gives the same bits.
//
// Sums of C and its squares are shifted if C is f32 (cuda_shifted_sums.cuh): from the elements of a
// column in a box, a lane subtracts the first of them. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/device/cuda_shifted_sums.cuh"
#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::gemm {

// If `enabled` is false, the class does nothing. `Sum` is the type of the sums: float, or double
// for squares of f32.
template <class Config, bool enabled = true, typename Sum = float>
class ColumnSums {
 public:
  // Clears this consumer warpgroup's slot, number `slot` of `slots`, [slots][2][n]: a slot has two
  // sums for each column. Synchronise the warpgroup before the first add(). Rows of C from `rows` on
  // do not count.
  __device__ ColumnSums(Sum* slots, int slot, int n, int rows)
      : slot_(slots + std::int64_t{slot} * 2 * n),
        n_(n),
        rows_(rows),
        warp_(int(threadIdx.x) % 128 / 32),
        lane_(int(threadIdx.x) % 32) {
    if constexpr (enabled)
      for (int i = int(threadIdx.x) % 128; i < 2 * n; i += 128) slot_[i] = 0;
  }

  // Call this before the first box of each tile. `column` is the tile's first column of C.
  __device__ void begin(int column) {
    if constexpr (enabled) {
      if (column != column_) flush();
      column_ = column;
    }
  }

  // Adds a box. The box begins at column `chunk` * kWidth of the tile and at row `row` of C. Set
  // `squares` if `other` is the same box. Set `gaps` if the box may have rows of zeros that belong
  // to no output.
  template <bool squares, bool gaps = false>
  __device__ void add(int chunk, const std::uint8_t* box, const std::uint8_t* other, int row) {
    if constexpr (enabled)
      row + 64 <= rows_ ? add_rows<squares, true, gaps>(chunk, box, other, row)
                        : add_rows<squares, false, gaps>(chunk, box, other, row);
  }

  // Adds the sums in registers to the slot. Call this after the last tile.
  __device__ void flush() {
    if constexpr (enabled) {
      const int end = min(n_, column_ + Config::columns);
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        const int column = column_ + column_of(i);
        const Sum sum = kHalves || kDealt ? sums_[i] : of_four_lanes(sums_[i]);
        const bool has_it = kHalves ? lane_ % 4 == lane_ / 8 : kDealt || lane_ < 8;
        // No other lane adds to this element. The operation is atomic only because it then need not
        // wait for the old value.
        if (has_it && column_ >= 0 && column < end) atomicAdd(slot_ + i % 2 * n_ + column, sum);
        sums_[i] = 0;
      }
    }
  }

 private:
  static constexpr bool kHalves = Config::element_bytes == 2;  // true for bf16, false for f32
  // The number of columns of a box. Each of the four warps sums a quarter of them.
  static constexpr int kWidth = Config::box_columns;

  template <bool squares, bool all_count, bool gaps>
  __device__ void add_rows(int chunk, const std::uint8_t* box, const std::uint8_t* other, int row) {
    if constexpr (kHalves)
      multiply<squares, all_count>(sums_ + chunk * 4, box, other, row);
    else if constexpr (squares)
      walk_squares<!all_count || gaps>(chunk, box, all_count ? 64 : rows_ - row);
    else
      walk<all_count>(sums_ + chunk * 2, box, other, row);
  }
  // Returns to which column of the tile sums_[sum] belongs.
  __device__ int column_of(int sum) const {
    return kHalves ? sum / 4 * 64 + warp_ * 16 + sum % 4 / 2 * 8 + lane_ / 4
                   : (kDealt ? sum / 2 * 4 + lane_ / 8 : sum / 2) * 32 + warp_ * 8 + lane_ % 8;
  }

  // Adds up a box of bf16 on tensor cores, by one matrix product. The right factor is the box. The
  // rows of the left factor are columns of the second box, and then rows of ones. So the sums of
  // products are on the diagonal of the result, and the plain sums are in its last rows.
  template <bool squares, bool all_count>
  __device__ void multiply(float* sums, const std::uint8_t* box, const std::uint8_t* other, int row) {
    constexpr Word kOnes = 0x3f803f80;
    float products[2][4] = {};
    const int from = lane_ % 16 * 128 + (((warp_ * 2 + lane_ / 16) ^ (lane_ % 8)) << 4);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      Word right[4], left[4];
      load<all_count>(right, box + from + step * 16 * 128, row + step * 16);
      if constexpr (!squares) load<all_count>(left, other + from + step * 16 * 128, row + step * 16);
      const Word* const by = squares ? right : left;
#pragma unroll
      for (int group = 0; group < 2; ++group)
        multiply_tile<__nv_bfloat16>(products[group], {by[group * 2], kOnes, by[group * 2 + 1], kOnes},
                                     right[group * 2], right[group * 2 + 1]);
    }
    const bool odd = lane_ / 4 % 2 != 0;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      sums[group * 2] += odd ? products[group][3] : products[group][2];
      sums[group * 2 + 1] += odd ? products[group][1] : products[group][0];
    }
  }
  template <bool all_count>
  __device__ void load(Word (&words)[4], const std::uint8_t* from, int row) const {
    load_matrices<true>(words, from);
    if constexpr (!all_count)
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] &= rows_that_count(row + i % 2 * 8 + lane_ % 4 * 2);
  }
  // Returns a mask for a word that holds elements of rows `row` and `row` + 1. Its bits are ones
  // for rows that count.
  __device__ Word rows_that_count(int row) const {
    return (row < rows_ ? 0xffffu : 0u) | (row + 1 < rows_ ? 0xffff0000u : 0u);
  }

  // Adds up a box of f32 and its products with another box. Four lanes add up a column together.
  // Each lane reads two of every eight rows, which avoids bank conflicts.
  template <bool all_count>
  __device__ void walk(Sum* sums, const std::uint8_t* box, const std::uint8_t* other, int row) const {
    const int unit = warp_ * 2 + lane_ % 8 / 4;
    float sum = 0, products = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int in_eight = lane_ / 8 * 2 + i % 2, r = i / 2 * 8 + in_eight;
      const int at = r * 128 + ((unit ^ in_eight) << 4) + lane_ % 4 * 4;
      float value = *reinterpret_cast<const float*>(box + at);
      float by = *reinterpret_cast<const float*>(other + at);
      if (!all_count && row + r >= rows_) value = by = 0;
      sum += value;
      products = fmaf(value, by, products);
    }
    sums[0] += sum, sums[1] += products;
  }
  // Adds up the first `rows` rows of a box of f32 and their squares. The elements are shifted by
  // the column's first element. With `some_zeros`, elements that do not count are zero: a gap is up
  // to two rows of zeros, and rows from `rows` on are taken as zero. A zero adds nothing to the
  // sums, so zeros are not shifted, and the shift is the column's first element that is not zero.
  // Doubles take many registers. So only one of the four lanes of a column keeps its sums: the
  // lane for which lane_ / 8 equals chunk % 4.
  template <bool some_zeros>
  __device__ void walk_squares(int chunk, const std::uint8_t* box, int rows) {
    float shift = !some_zeros || rows > 0 ? element(box, 0) : 0, sum = 0, squares = 0;
    if constexpr (some_zeros)
      for (int row = 1; row <= 2 && shift == 0; ++row) shift = row < rows ? element(box, row) : 0;
    int count = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float value = !some_zeros || row_of(i) < rows ? element(box, row_of(i)) : 0;
      const bool counts = !some_zeros || value != 0;
      const float shifted = counts ? value - shift : 0;
      if (some_zeros) count += counts;
      sum += shifted;
      squares = fmaf(shifted, shifted, squares);
    }
    Sum all = of_four_lanes(sum), all_squares = of_four_lanes(squares);
    cuda::remove_shift(all, all_squares, some_zeros ? of_four_lanes(count) : 64, shift);
    if (lane_ / 8 == chunk % 4) sums_[chunk / 4 * 2] += all, sums_[chunk / 4 * 2 + 1] += all_squares;
  }
  // Returns the row of the box that this lane adds up as number i of 16.
  __device__ int row_of(int i) const { return i / 2 * 8 + lane_ / 8 * 2 + i % 2; }
  // Returns the element of a row of the box that is in this lane's column.
  __device__ float element(const std::uint8_t* box, int row) const {
    const int unit = warp_ * 2 + lane_ % 8 / 4;
    return *reinterpret_cast<const float*>(box + row * 128 + ((unit ^ (row & 7)) << 4) + lane_ % 4 * 4);
  }
  template <typename T>
  __device__ static T of_four_lanes(T sum) {
    sum += __shfl_xor_sync(~0u, sum, 8);
    return sum + __shfl_xor_sync(~0u, sum, 16);
  }

  Sum* slot_;
  int n_, rows_, warp_, lane_;
  int column_ = -1;
  // True if the chunks of f32 squares are dealt out to four lanes (walk_squares()).
  static constexpr bool kDealt = sizeof(Sum) == sizeof(double);
  static constexpr int kChunks = (Config::columns + kWidth - 1) / kWidth, kSums = kHalves ? kChunks * 4
                                                                                  : kDealt
                                                                                      ? (kChunks + 3) / 4 * 2
                                                                                      : kChunks * 2;
  Sum sums_[enabled ? kSums : 1] = {};
};

}  // namespace convoy::kernels::gemm
