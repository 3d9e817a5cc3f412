// The wgmma rung's way out: accumulators are finished in registers, staged in shared memory 64 rows of 128 bytes
// at a time and stored through TMA, which clips what lies outside C; where C's pitch does not suit TMA they are
// stored one by one. Sums over rows for batch norm are taken from the staged, rounded values, kept in shared
// memory while a consumer stays in its columns and added to its own slot in device memory when it leaves them:
// no atomics, so the same bits in every run. Device code, sm_90a only.
#pragma once

#include "kernels/gemm/sm90_kernel.cuh"

namespace convoy::kernels::gemm {

template <class Config>
class TileStore {
 public:
  struct Parameters {
    CUtensorMap c;  // [pieces of k][m][n]; pieces only where the raw accumulators are stored
    Epilogue epilogue;
    std::int64_t m, n;
    bool through_tma;
    float* sum_slots;  // null, or [blocks * 2][2][n], zero before the launch
  };

  __device__ TileStore(const Parameters& parameters, std::uint8_t* staging, float* column_sums, int consumer)
      : parameters_(parameters),
        epilogue_(parameters.epilogue),
        staging_(staging),
        column_sums_(column_sums),
        consumer_(consumer),
        thread_(int(threadIdx.x) % 128),
        warp_(thread_ / 32),
        lane_(thread_ % 32) {
    if (parameters_.sum_slots != nullptr) clear_sums();
  }

  __device__ void tile(Accumulators<Config>& sums, int row, int column, int split) {
    if (parameters_.sum_slots != nullptr && column != sums_column_) {
      flush_sums();
      sums_column_ = column;
    }
    if (epilogue_.partial == nullptr && epilogue_.changes_values()) transform(sums, row, column);
    if (!parameters_.through_tma)
      store_elements(sums, row, column);
    else if (epilogue_.bf16)
      store_staged<true>(sums, row, column, split);
    else
      store_staged<false>(sums, row, column, split);
  }

  __device__ void finish() {
    if (parameters_.sum_slots != nullptr) flush_sums();
    if (thread_ == 0) sm90::store_wait_read<0>();
  }

 private:
  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }
  __device__ bool inside(std::int64_t row, std::int64_t column) const {
    return row < parameters_.m && column < parameters_.n;
  }

  // Calls visit(element, row, column) for this thread's accumulators.
  template <class Visit>
  __device__ void for_each(Accumulators<Config>& sums, int row, int column, Visit visit) const {
#pragma unroll
    for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
      for (int i = 0; i < Config::columns / 2; ++i)
        visit(sums[block][i], row + block * 64 + warp_ * 16 + lane_ / 4 + (i / 2 % 2) * 8,
              column + i / 4 * 8 + lane_ % 4 * 2 + i % 2);
  }
  __device__ void transform(Accumulators<Config>& sums, int row, int column) const {
    for_each(sums, row, column, [&](float& sum, int r, int c) {
      if (inside(r, c)) sum = epilogue_.finish(sum, r, c);
    });
  }
  __device__ void store_elements(Accumulators<Config>& sums, int row, int column) const {
    for_each(sums, row, column, [&](float& sum, std::int64_t r, int c) {
      if (!inside(r, c)) return;
      const std::int64_t index = r * epilogue_.ldc + c;
      if (epilogue_.bf16)
        static_cast<__nv_bfloat16*>(epilogue_.c)[index] = __float2bfloat16_rn(sum);
      else
        static_cast<float*>(epilogue_.c)[index] = sum;
    });
  }

  template <bool bf16>
  __device__ void store_staged(Accumulators<Config>& sums, int row, int column, int split) {
    constexpr int kWidth = bf16 ? 64 : 32;
#pragma unroll
    for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
      for (int chunk = 0; chunk < Config::columns / kWidth; ++chunk) {
        const int r = row + block * 64, c = column + chunk * kWidth;
        if (!inside(r, c)) continue;
        std::uint8_t* buffer = staging_ + staged_ * Config::staging_bytes;
        if (thread_ == 0) sm90::store_wait_read<1>();
        sync();
        if constexpr (bf16)
          stage_bf16(sums[block] + chunk * 32, buffer);
        else
          stage_f32(sums[block] + chunk * 16, buffer);
        sm90::async_proxy_fence();
        sync();
        if (thread_ == 0) {
          sm90::store_3d(&parameters_.c, buffer, c, r, split);
          sm90::store_commit();
        }
        if (parameters_.sum_slots != nullptr) add_sums<bf16>(buffer, r, chunk * kWidth);
        staged_ ^= 1;
      }
  }

  // 64 columns; eight columns of eight rows are one matrix of stmatrix.
  __device__ void stage_bf16(const float* sums, const std::uint8_t* buffer) const {
    const int row = warp_ * 16 + lane_ % 16;
    const std::uint32_t line = sm90::shared_address(buffer) + row * 128;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
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

  // Adds the staged rows below m to the sums of their columns. A warp takes 32 bytes of each row; its lanes
  // are 8 words by 4 rows that differ in their swizzle, so no two meet in a bank.
  template <bool bf16>
  __device__ void add_sums(const std::uint8_t* buffer, int row, int column) {
    const int word = lane_ % 8, group = lane_ / 8;
    float sum[2] = {0, 0}, square[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int r = group * 2 + i % 2 + i / 2 * 8, unit = (warp_ * 2 + word / 4) ^ (r & 7);
      if (row + r >= parameters_.m) continue;
      const auto bits = *reinterpret_cast<const std::uint32_t*>(buffer + r * 128 + unit * 16 + word % 4 * 4);
      const float low = bf16 ? __uint_as_float(bits << 16) : __uint_as_float(bits);
      const float high = bf16 ? __uint_as_float(bits & 0xffff0000u) : 0;
      sum[0] += low;
      square[0] = fmaf(low, low, square[0]);
      sum[1] += high;
      square[1] = fmaf(high, high, square[1]);
    }
#pragma unroll
    for (int half = 0; half < (bf16 ? 2 : 1); ++half) {
      sum[half] += __shfl_xor_sync(~0u, sum[half], 8);
      sum[half] += __shfl_xor_sync(~0u, sum[half], 16);
      square[half] += __shfl_xor_sync(~0u, square[half], 8);
      square[half] += __shfl_xor_sync(~0u, square[half], 16);
      if (group == 0) {
        const int c = column + (warp_ * 8 + word) * (bf16 ? 2 : 1) + half;
        column_sums_[c] += sum[half];
        column_sums_[Config::columns + c] += square[half];
      }
    }
  }
  __device__ void clear_sums() {
    for (int i = thread_; i < 2 * Config::columns; i += 128) column_sums_[i] = 0;
    sync();
  }
  __device__ void flush_sums() {
    sync();
    float* slot = parameters_.sum_slots + (std::int64_t(blockIdx.x) * 2 + consumer_) * 2 * parameters_.n;
    for (int i = thread_; sums_column_ >= 0 && i < 2 * Config::columns; i += 128) {
      const std::int64_t column = sums_column_ + i % Config::columns;
      if (column < parameters_.n) slot[i / Config::columns * parameters_.n + column] += column_sums_[i];
    }
    sync();
    clear_sums();
  }

  const Parameters& parameters_;
  const Epilogue& epilogue_;
  std::uint8_t* staging_;
  float* column_sums_;
  int consumer_, thread_, warp_, lane_;
  int staged_ = 0;
  int sums_column_ = -1;
};

}  // namespace convoy::kernels::gemm
