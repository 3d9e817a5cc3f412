// The wgmma rung's way out: accumulators are scaled, given their bias and ReLU in registers, staged in shared
// memory 64 rows of 128 bytes at a time and stored through TMA, which clips what lies outside C. What TMA cannot
// store, and what needs C's old values, goes out raw in fp32 and is finished by another kernel. Sums over rows
// for batch norm are taken from the staged, rounded values, kept in registers while a consumer stays in its
// columns and added to its own slot in device memory when it leaves them: no atomics, so the same bits in every
// run. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

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

template <class Config, bool with_sums, class Placement = MatrixPlacement>
class TileStore {
 public:
  struct Parameters {
    CUtensorMap c;  // [pieces of k][m][n]; pieces only where raw accumulators are stored
    int m, n;
    float alpha;
    const float* bias;  // null: none
    bool relu, bf16;
    std::uint8_t*
        narrow;  // C itself, rows without gaps: for the last 32 columns of tiles with no whole chunks of 64
    float* sum_slots;  // with_sums: [blocks * 2][2][n], zero before the launch
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
        adjusts_(parameters.alpha != 1 || parameters.bias != nullptr || parameters.relu) {}

  __device__ void tile(Accumulators<Config>& sums, int row, int column, int split) {
    if constexpr (with_sums) {
      if (column != sums_column_) flush_sums();
      sums_column_ = column;
    }
    if (parameters_.bf16)
      store_staged<true>(sums, row, column, split);
    else
      store_staged<false>(sums, row, column, split);
  }

  __device__ void finish() {
    if constexpr (with_sums) flush_sums();
    if (thread_ == 0) sm90::store_wait_read<0>();
  }

 private:
  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }

  // Of one chunk: alpha, bias and ReLU. Elements 4 i + {0, 1} and 4 i + {2, 3} are of one pair of columns.
  template <int count>
  __device__ void adjust(float* sums, int column) const {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const int c = column + i * 2 + lane_ % 4 * 2;
      const bool biased = parameters_.bias != nullptr;
      const float bias[2] = {biased && c < parameters_.n ? __ldg(parameters_.bias + c) : 0.0f,
                             biased && c + 1 < parameters_.n ? __ldg(parameters_.bias + c + 1) : 0.0f};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[i + j] = sums[i + j] * parameters_.alpha + bias[j % 2];
        if (parameters_.relu && sums[i + j] < 0) sums[i + j] = 0;
      }
    }
  }

  template <bool bf16>
  __device__ void store_staged(Accumulators<Config>& sums, int row, int column, int split) {
    constexpr int kWidth = bf16 ? 64 : 32;
#pragma unroll
    for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
      for (int chunk = 0; chunk < (Config::columns + kWidth - 1) / kWidth; ++chunk) {
        const int r = row + block * 64, c = column + chunk * kWidth;
        if (r >= parameters_.m || c >= parameters_.n) continue;
        const bool narrow = (chunk + 1) * kWidth > Config::columns;
        float* chunk_sums = sums[block] + chunk * (kWidth / 2);
        if (adjusts_) narrow ? adjust<kWidth / 4>(chunk_sums, c) : adjust<kWidth / 2>(chunk_sums, c);
        std::uint8_t* buffer = staging_ + staged_ * Config::staging_bytes;
        if (thread_ == 0) sm90::store_wait_read<1>();
        sync();
        if constexpr (bf16)
          narrow ? stage_bf16<2>(chunk_sums, buffer) : stage_bf16<4>(chunk_sums, buffer);
        else
          stage_f32(chunk_sums, buffer);
        sm90::async_proxy_fence();
        sync();
        if (narrow) {
          copy_narrow(buffer, r, c);
        } else if (thread_ == 0) {
          parameters_.placement.store(&parameters_.c, buffer, c, r, split);
          sm90::store_commit();
        }
        if (with_sums && !(narrow && warp_ >= 2))
          add_sums<bf16>(column_sums_ + chunk * (bf16 ? 4 : 2), buffer, r);
        staged_ ^= 1;
      }
  }

  // 32 columns of bf16; TMA's boxes are 64 wide and would reach into the next tile.
  __device__ void copy_narrow(const std::uint8_t* buffer, int row, int column) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = i * 32 + thread_ / 4, unit = thread_ % 4, c = column + unit * 8;
      if (row + r >= parameters_.m || c >= parameters_.n) continue;
      const auto* from = reinterpret_cast<const uint4*>(buffer + r * 128 + ((unit ^ (r & 7)) << 4));
      *reinterpret_cast<uint4*>(parameters_.narrow + (std::int64_t{row + r} * parameters_.n + c) * 2) = *from;
    }
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
      sm90::stmatrix_x4(line + ((unit ^ (row & 7)) << 4), packed(from[0], from[1]), packed(from[2], from[3]),
                        packed(from[4], from[5]), packed(from[6], from[7]));
    }
  }
  __device__ static std::uint32_t packed(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&both);
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

  // Adds the staged rows that count to the sums of their columns. A warp takes 32 bytes of each row; its lanes
  // are 8 words by 4 rows that differ in their swizzle, so no two meet in a bank. `sums` are of one chunk: sum
  // and sum of squares of the word's column, or of both of its columns.
  template <bool bf16>
  __device__ void add_sums(float* sums, const std::uint8_t* buffer, int row) const {
    const int word = lane_ % 8, group = lane_ / 8;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int r = group * 2 + i % 2 + i / 2 * 8, unit = (warp_ * 2 + word / 4) ^ (r & 7);
      if (row + r >= sum_rows_) continue;
      const auto bits = *reinterpret_cast<const std::uint32_t*>(buffer + r * 128 + unit * 16 + word % 4 * 4);
      const float low = bf16 ? __uint_as_float(bits << 16) : __uint_as_float(bits);
      sums[0] += low;
      sums[1] = fmaf(low, low, sums[1]);
      if constexpr (bf16) {
        const float high = __uint_as_float(bits & 0xffff0000u);
        sums[2] += high;
        sums[3] = fmaf(high, high, sums[3]);
      }
    }
  }
  __device__ void flush_sums() {
    float* slot =
        parameters_.sum_slots + (std::int64_t(blockIdx.x) * 2 + consumer_) * 2 * std::int64_t{parameters_.n};
    const int word = warp_ * 8 + lane_ % 8;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      float sum = column_sums_[i];
      sum += __shfl_xor_sync(~0u, sum, 8);
      sum += __shfl_xor_sync(~0u, sum, 16);
      const int column =
          sums_column_ + (parameters_.bf16 ? i / 4 * 64 + word * 2 + i / 2 % 2 : i / 2 * 32 + word);
      if (lane_ < 8 && sums_column_ >= 0 && column < parameters_.n)
        slot[i % 2 * parameters_.n + column] += sum;
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
  static constexpr int kSums =
      (Config::columns + 63) / 64 * 4;  // in the lanes of a group of rows: each column's two sums
  float column_sums_[with_sums ? kSums : 1] = {};
};

}  // namespace convoy::kernels::gemm
