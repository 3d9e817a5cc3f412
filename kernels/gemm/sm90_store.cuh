// The wgmma rung's way out: accumulators are scaled, given their bias and ReLU in registers, staged in shared
// memory 64 rows of 128 bytes at a time and stored through TMA, which clips what lies outside C. What TMA cannot
// store, and what needs C's old values, goes out raw in fp32 and is finished by another kernel. Sums over rows
// for batch norm are taken from the staged, rounded values, kept in registers while a consumer stays in its
// columns and added to its own slot in device memory when it leaves them, so the same bits in every run. Where there is
// a mask, what it does not let through becomes zero on the way from the staged box. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include "kernels/gemm/mma_instructions.cuh"
#include "kernels/gemm/sm90_kernel.cuh"

namespace convoy::kernels::gemm {

// Where a staged box of 64 rows goes: into a plain matrix. Convolutions put their own here.
struct MatrixPlacement {
  __device__ void store(const CUtensorMap* c, const void* from, int column, int row, int split) const {
    sm90::store_3d(c, from, column, row, split);
  }
  // Rows that count in the sums of columns.
  __device__ int sum_rows(int m) const { return m; }
};

template <class Config, Extra extra, class Placement = MatrixPlacement>
class TileStore {
 public:
  struct Parameters {
    CUtensorMap c;  // [pieces of k][m][n]; pieces only where raw accumulators are stored
    int m, n;
    float alpha;
    const float* bias;  // null: none
    bool relu, bf16;
    std::uint8_t* plain;       // C itself, rows without gaps: for what does not go through TMA
    const std::uint8_t* mask;  // Extra::mask: of C's type, without gaps; C is zero where it is not above zero
    float* sum_slots;          // Extra::sums, of a C in bf16: [blocks * 2][2][n]
    Placement placement;
  };

  __device__ TileStore(const Parameters& parameters, std::uint8_t* staging, int consumer)
      : parameters_(parameters),
        staging_(staging),
        consumer_(consumer),
        thread_(int(threadIdx.x) % 128),
        warp_(thread_ / 32),
        lane_(thread_ % 32),
        sum_rows_(with_sums ? parameters.placement.sum_rows(parameters.m) : 0),
        adjusts_(parameters.alpha != 1 || parameters.bias != nullptr || parameters.relu) {
    if constexpr (with_sums) {  // a tile's barriers lie between this and sums of its own
      for (int i = thread_; i < 2 * parameters.n; i += 128) sum_slot()[i] = 0;
    }
  }

  __device__ void tile(Accumulators<Config>& sums, int row, int column, int split) {
    if constexpr (with_sums) {
      if (column != sums_column_) flush_sums();
      sums_column_ = column;
    }
    if (with_sums || parameters_.bf16)
      store_staged<true>(sums, row, column, split);
    else
      store_staged<false>(sums, row, column, split);
  }

  // Before a tile is multiplied: its mask comes as far as the L2 cache meanwhile.
  __device__ void prefetch_mask(int row, int column) const {
    if constexpr (with_mask) {
      const int bytes = parameters_.bf16 ? 2 : 4, across = Config::columns * bytes / 128;
      for (int i = thread_; i < Config::consumer_rows * across; i += 128) {
        const int r = row + i / across, c = column + i % across * (128 / bytes);
        if (r < parameters_.m && c < parameters_.n)
          sm90::prefetch_l2(parameters_.mask + (std::int64_t{r} * parameters_.n + c) * bytes);
      }
    }
  }

  __device__ void finish() {
    if constexpr (with_sums) flush_sums();
    if (thread_ == 0) sm90::store_wait_read<0>();
  }

 private:
  static constexpr bool with_sums = extra == Extra::sums, with_mask = extra == Extra::mask;
  static_assert(!with_mask || Config::columns % 64 == 0);
  using Mask = uint4[4];  // a thread's part of that of a box

  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }

  __device__ float bias_of(int column) const {
    return parameters_.bias != nullptr && column < parameters_.n ? __ldg(parameters_.bias + column) : 0.0f;
  }
  // Alpha, bias and ReLU of one chunk; swapped, of 64 rows. Elements 4 i + {0, 1} and 4 i + {2, 3} are of one pair of
  // columns; swapped, of one column each.
  template <int count>
  __device__ void adjust(float* sums, int column) const {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const int c = Config::swapped ? column + warp_ * 16 + lane_ / 4 : column + i * 2 + lane_ % 4 * 2;
      const float bias[2] = {bias_of(c), bias_of(Config::swapped ? c + 8 : c + 1)};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[i + j] = sums[i + j] * parameters_.alpha + bias[Config::swapped ? j / 2 : j % 2];
        if (parameters_.relu && sums[i + j] < 0) sums[i + j] = 0;
      }
    }
  }

  template <bool bf16>
  __device__ void store_staged(Accumulators<Config>& sums, int row, int column, int split) {
    constexpr int kWidth = bf16 ? 64 : 32, kChunks = (Config::columns + kWidth - 1) / kWidth;
#pragma unroll
    for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int r = row + block * 64, c = column + chunk * kWidth;
        if (r >= parameters_.m || c >= parameters_.n) continue;
        const bool narrow = (chunk + 1) * kWidth > Config::columns;
        // Swapped, a warp has 16 columns of all rows: its sums are adjusted once, and staged with the chunk they lie in.
        float* chunk_sums = Config::swapped ? sums[0] + block * 32 : sums[block] + chunk * (kWidth / 2);
        if constexpr (Config::swapped) {
          if (adjusts_ && chunk == 0) adjust<32>(chunk_sums, column);
        } else if (adjusts_) {
          narrow ? adjust<kWidth / 4>(chunk_sums, c) : adjust<kWidth / 2>(chunk_sums, c);
        }
        Mask mask;
        if constexpr (with_mask) load_mask<bf16>(mask, r, c);
        std::uint8_t* buffer = staging_ + staged_ * Config::staging_bytes;
        if (thread_ == 0) sm90::store_wait_read<1>();
        sync();
        if constexpr (Config::swapped)
          bf16 ? stage_swapped_bf16(chunk_sums, buffer) : stage_swapped_f32(chunk_sums, buffer, chunk);
        else if constexpr (bf16)
          narrow ? stage_bf16<2>(chunk_sums, buffer) : stage_bf16<4>(chunk_sums, buffer);
        else
          stage_f32(chunk_sums, buffer);
        if constexpr (!with_mask) sm90::async_proxy_fence();
        sync();
        if constexpr (with_mask) {
          copy_masked<bf16>(buffer, r, c, mask);
        } else {
          if (narrow) copy_narrow(buffer, r, c);
          if (thread_ == 0) {
            if (!narrow) parameters_.placement.store(&parameters_.c, buffer, c, r, split);
            sm90::store_commit();  // of a narrow box nothing: the wait counts one a box
          }
        }
        if (with_sums && !(narrow && warp_ >= 2))  // a warp has 16 columns
          add_sums(column_sums_ + chunk * 4, buffer, r);
        staged_ ^= 1;
      }
  }

  // Calls use(number, 16 bytes of the staged box, their distance in bytes from C's begin) for what is this thread's, and
  // lies in C, of a box with so many 16 bytes a row.
  template <bool bf16, int units, class Use>
  __device__ void for_each_unit(const std::uint8_t* buffer, int row, int column, const Use& use) const {
    constexpr int kElements = bf16 ? 8 : 4;
    const int unit = thread_ % units, c = column + unit * kElements;
#pragma unroll
    for (int i = 0; i < units / 2; ++i) {
      const int r = i * (128 / units) + thread_ / units;
      if (row + r < parameters_.m && c < parameters_.n)
        use(i, reinterpret_cast<const uint4*>(buffer + r * 128 + ((unit ^ (r & 7)) << 4)),
            (std::int64_t{row + r} * parameters_.n + c) * (16 / kElements));
    }
  }
  // 32 columns of bf16; TMA's boxes are 64 wide and would reach into the next tile.
  __device__ void copy_narrow(const std::uint8_t* buffer, int row, int column) const {
    for_each_unit<true, 4>(buffer, row, column, [&](int, const uint4* staged, std::int64_t offset) {
      *reinterpret_cast<uint4*>(parameters_.plain + offset) = *staged;
    });
  }

  template <bool bf16>
  __device__ void load_mask(Mask& mask, int row, int column) const {
    for_each_unit<bf16, 8>(nullptr, row, column, [&](int i, const uint4*, std::int64_t offset) {
      mask[i] = __ldg(reinterpret_cast<const uint4*>(parameters_.mask + offset));
    });
  }
  template <bool bf16>
  __device__ void copy_masked(const std::uint8_t* buffer, int row, int column, const Mask& mask) const {
    for_each_unit<bf16, 8>(buffer, row, column, [&](int i, const uint4* staged, std::int64_t offset) {
      const uint4 values = *staged, by = mask[i];
      *reinterpret_cast<uint4*>(parameters_.plain + offset) = {
          kept<bf16>(values.x, by.x), kept<bf16>(values.y, by.y), kept<bf16>(values.z, by.z),
          kept<bf16>(values.w, by.w)};
    });
  }
  template <bool bf16>
  __device__ static std::uint32_t kept(std::uint32_t value, std::uint32_t mask) {
    if constexpr (!bf16) return __uint_as_float(mask) > 0 ? value : 0;
    const auto pair = *reinterpret_cast<const __nv_bfloat162*>(&mask);
    return value & __hgt2_mask(pair, __float2bfloat162_rn(0));
  }

  // 16 columns a pair; eight columns of eight rows are one matrix of stmatrix.
  template <int pairs>
  __device__ void stage_bf16(const float* sums, const std::uint8_t* buffer) const {
    const int row = warp_ * 16 + lane_ % 16;
    const std::uint32_t line = sm90::shared_address(buffer) + row * 128;
#pragma unroll
    for (int pair = 0; pair < pairs; ++pair) {
      const int unit = pair * 2 + lane_ / 16;
      const float* from = sums + pair * 8;
      sm90::stmatrix_x4<false>(line + ((unit ^ (row & 7)) << 4), packed(from[0], from[1]),
                               packed(from[2], from[3]), packed(from[4], from[5]), packed(from[6], from[7]));
    }
  }
  __device__ static std::uint32_t packed(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  }

  // The same of swapped products: eight rows of 16 columns in each two matrices, transposed on their way.
  __device__ void stage_swapped_bf16(const float* sums, const std::uint8_t* buffer) const {
    const int unit = warp_ * 2 + lane_ / 8 % 2, row = lane_ / 16 * 8 + lane_ % 8;
    const std::uint32_t to = sm90::shared_address(buffer) + row * 128 + ((unit ^ (row & 7)) << 4);
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float* from = sums + pair * 8;
      sm90::stmatrix_x4<true>(to + pair * 16 * 128, packed(from[0], from[1]), packed(from[2], from[3]),
                              packed(from[4], from[5]), packed(from[6], from[7]));
    }
  }
  __device__ void stage_swapped_f32(const float* sums, std::uint8_t* buffer, int chunk) const {
    if (warp_ / 2 != chunk) return;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int row = i / 4 * 8 + lane_ % 4 * 2 + i % 2, column = warp_ % 2 * 16 + i / 2 % 2 * 8 + lane_ / 4;
      *reinterpret_cast<float*>(buffer + row * 128 + ((column / 4 ^ (row & 7)) << 4) + column % 4 * 4) =
          sums[i];
    }
  }

  // 32 columns.
  __device__ void stage_f32(const float* sums, std::uint8_t* buffer) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_ * 16 + half * 8 + lane_ / 4;
#pragma unroll
      for (int group = 0; group < 4; ++group) {
        const int unit = group * 2 + lane_ % 4 / 2;
        auto* to = reinterpret_cast<float2*>(buffer + row * 128 + ((unit ^ (row & 7)) << 4) + lane_ % 2 * 8);
        *to = make_float2(sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1]);
      }
    }
  }

  // Adds the staged rows that count to the sums of their columns, of which a warp has two groups of eight. With a group,
  // transposed, above eight rows of ones as the left operand of a product and the group as the right one, squares are on
  // the diagonal above, sums below. The lane of a diagonal's element keeps its column's: of each group sum, squares.
  __device__ void add_sums(float* sums, const std::uint8_t* buffer, int row) const {
    constexpr Word kOnes = 0x3f803f80;
    float products[2][4] = {};
    const std::uint8_t* from = buffer + lane_ % 16 * 128 + (((warp_ * 2 + lane_ / 16) ^ (lane_ % 8)) << 4);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      Word words[4];
      load_matrices<true>(words, from + step * 16 * 128);
      if (row + 64 > sum_rows_)
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] &= rows_that_count(row + step * 16 + i % 2 * 8 + lane_ % 4 * 2);
#pragma unroll
      for (int group = 0; group < 2; ++group) {
        const Word low = words[group * 2], high = words[group * 2 + 1];
        multiply_tile<__nv_bfloat16>(products[group], {low, kOnes, high, kOnes}, low, high);
      }
    }
    const bool odd = lane_ / 4 % 2 != 0;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      sums[group * 2] += odd ? products[group][3] : products[group][2];
      sums[group * 2 + 1] += odd ? products[group][1] : products[group][0];
    }
  }
  // Of a word that holds elements of this row and the next.
  __device__ Word rows_that_count(int row) const {
    return (row < sum_rows_ ? 0xffffu : 0u) | (row + 1 < sum_rows_ ? 0xffff0000u : 0u);
  }
  __device__ float* sum_slot() const {
    return parameters_.sum_slots + (std::int64_t{blockIdx.x} * 2 + consumer_) * 2 * parameters_.n;
  }
  __device__ void flush_sums() {
    float* const slot = sum_slot();
    const bool on_diagonal = lane_ % 4 == lane_ / 8;
    const int end = min(parameters_.n, sums_column_ + Config::columns);
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int column = sums_column_ + i / 4 * 64 + warp_ * 16 + i % 4 / 2 * 8 + lane_ / 4;
      // Of this lane alone, so the order of additions is its own; as an atomic nothing waits for the old value.
      if (on_diagonal && sums_column_ >= 0 && column < end)
        atomicAdd(slot + i % 2 * parameters_.n + column, column_sums_[i]);
      column_sums_[i] = 0;
    }
  }

  const Parameters& parameters_;
  std::uint8_t* staging_;
  int consumer_, thread_, warp_, lane_;
  int sum_rows_;
  bool adjusts_;
  int staged_ = 0;
  int sums_column_ = -1;
  static constexpr int kSums = (Config::columns + 63) / 64 * 4;
  float column_sums_[with_sums ? kSums : 1] = {};
};

}  // namespace convoy::kernels::gemm
