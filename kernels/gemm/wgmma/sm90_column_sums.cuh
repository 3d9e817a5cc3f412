// Two sums a column for batch norm, over the staged boxes (sm90_staging.cuh) of a consumer: of a
// box, and of its products with another box element by element. A consumer keeps them in registers
// while it stays in its columns and then adds them to its own slot in device memory, so that the
// bits are the same in every run. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/gemm/mma_sync/mma_instructions.cuh"

namespace convoy::kernels::gemm {

// enabled: false for kernels without sums.
template <class Config, bool enabled = true>
class ColumnSums {
 public:
  // slots [blocks * 2][2][n]: clears this consumer's slot. A barrier must come between this and
  // add. Rows from `rows` on do not count.
  __device__ ColumnSums(float* slots, int n, int rows, int consumer)
      : slot_(slots + (std::int64_t{blockIdx.x} * 2 + consumer) * 2 * n),
        n_(n),
        rows_(rows),
        warp_(int(threadIdx.x) % 128 / 32),
        lane_(int(threadIdx.x) % 32) {
    if constexpr (enabled)
      for (int i = int(threadIdx.x) % 128; i < 2 * n; i += 128) slot_[i] = 0;
  }

  // Call this before the boxes of a tile.
  __device__ void begin(int column) {
    if constexpr (enabled) {
      if (column != column_) flush();
      column_ = column;
    }
  }

  // Adds the box of the tile's chunk of columns, from this row on. squares: the other box is the
  // same one.
  template <bool squares>
  __device__ void add(int chunk, const std::uint8_t* box, const std::uint8_t* other, int row) {
    if constexpr (enabled)
      row + 64 <= rows_ ? add_rows<squares, true>(chunk, box, other, row)
                        : add_rows<squares, false>(chunk, box, other, row);
  }

  // Call this at the end.
  __device__ void flush() {
    if constexpr (enabled) {
      const int end = min(n_, column_ + Config::columns);
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        const int column = column_ + column_of(i);
        const float sum = kHalves ? sums_[i] : of_four_lanes(sums_[i]);
        const bool has_it = kHalves ? lane_ % 4 == lane_ / 8 : lane_ < 8;
        // Only this lane adds here, so the order is fixed. The atomic avoids a wait for the old
        // value.
        if (has_it && column_ >= 0 && column < end) atomicAdd(slot_ + i % 2 * n_ + column, sum);
        sums_[i] = 0;
      }
    }
  }

 private:
  static constexpr bool kHalves = Config::element_bytes == 2;  // bf16; else f32
  static constexpr int kWidth = Config::box_columns;           // each warp has a quarter of them

  template <bool squares, bool all_count>
  __device__ void add_rows(int chunk, const std::uint8_t* box, const std::uint8_t* other, int row) {
    if constexpr (kHalves)
      multiply<squares, all_count>(sums_ + chunk * 4, box, other, row);
    else
      walk<squares, all_count>(sums_ + chunk * 2, box, other, row);
  }
  // The tile's column of sums_[sum].
  __device__ int column_of(int sum) const {
    return kHalves ? sum / 4 * 64 + warp_ * 16 + sum % 4 / 2 * 8 + lane_ / 4
                   : sum / 2 * 32 + warp_ * 8 + lane_ % 8;
  }

  // bf16. A warp has two groups of eight columns. The left operand of a product is a group of the
  // other box, transposed, above eight rows of ones; the right operand is the group. Products are
  // then on the diagonal, and sums below it.
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
  // Masks the halves of a word, which holds elements of this row and the next one.
  __device__ Word rows_that_count(int row) const {
    return (row < rows_ ? 0xffffu : 0u) | (row + 1 < rows_ ? 0xffff0000u : 0u);
  }

  // f32. Four lanes have a column, with two rows of eight each, so that a warp reads from different
  // banks.
  template <bool squares, bool all_count>
  __device__ void walk(float* sums, const std::uint8_t* box, const std::uint8_t* other, int row) {
    const int unit = warp_ * 2 + lane_ % 8 / 4;
    float sum = 0, products = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int in_eight = lane_ / 8 * 2 + i % 2, r = i / 2 * 8 + in_eight;
      const int at = r * 128 + ((unit ^ in_eight) << 4) + lane_ % 4 * 4;
      float value = *reinterpret_cast<const float*>(box + at);
      float by = squares ? value : *reinterpret_cast<const float*>(other + at);
      if (!all_count && row + r >= rows_) value = by = 0;
      sum += value;
      products = fmaf(value, by, products);
    }
    sums[0] += sum, sums[1] += products;
  }
  __device__ static float of_four_lanes(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 8);
    return sum + __shfl_xor_sync(~0u, sum, 16);
  }

  float* slot_;
  int n_, rows_, warp_, lane_;
  int column_ = -1;
  static constexpr int kSums = (Config::columns + kWidth - 1) / kWidth * (kHalves ? 4 : 2);
  float sums_[enabled ? kSums : 1] = {};
};

}  // namespace convoy::kernels::gemm
