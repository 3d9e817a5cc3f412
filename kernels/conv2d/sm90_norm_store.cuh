// The way out of backward_data where x came out of a batch norm with a ReLU (input_norm): dx and the other gradient of x
// become g, zero where the ReLU cut, and the sums of g and of g times the norm's input are taken from what is stored. The
// norm's input and the other gradient come through the ring. Device code, sm_90a only.
#pragma once

#include "kernels/conv2d/sm90_call.h"
#include "kernels/gemm/sm90_column_sums.cuh"
#include "kernels/gemm/sm90_launch.cuh"
#include "kernels/gemm/sm90_staging.cuh"

namespace convoy::kernels::conv {

template <class Config>
class NormStore {
 public:
  using Ring = gemm::Ring<Config>;
  struct Parameters {
    CUtensorMap g;            // [m][n], bf16, as the operands are
    std::uint8_t* plain;      // g itself
    CUtensorMap operands[2];  // the norm's input, and the other gradient
    int m, n;
    const std::uint8_t* mask;  // [m][n / 8], a bit an element
    float* sum_slots;          // [blocks * 2][2][n]
    const StepControl* control;
    int sample_rows;  // the first control->valid samples' rows count, the others' g is zero
  };

  // An operand's boxes of 64 x 64 lie in as few stages as hold them, by chunks of 64 columns, of all of a tile's rows; behind
  // each of its stages that of the other operand.
  static constexpr int kBoxBytes = 64 * 128;
  static constexpr int kRowBoxes = Config::rows / 64, kChunks = (Config::columns + 63) / 64;
  static constexpr int kMostChunks = Config::stage_bytes / (kRowBoxes * kBoxBytes);
  static constexpr int kParts = (kChunks + kMostChunks - 1) / kMostChunks;
  static constexpr int kPartChunks = (kChunks + kParts - 1) / kParts;
  static_assert(Config::cluster == 1 && Config::stages > 2);

  __device__ static void prefetch(const Parameters& p) {
    sm90::prefetch_tensor_map(&p.g);
    for (const CUtensorMap& operand : p.operands) sm90::prefetch_tensor_map(&operand);
  }
  __device__ static constexpr int operand_stages(const Parameters&) { return 2 * kParts; }
  __device__ static void load_operands(const Parameters& p, Ring& ring, int row, int column) {
    for (int first = 0; first < kChunks; first += kPartChunks)
      for (const CUtensorMap& operand : p.operands) {
        const int chunks = min(kPartChunks, kChunks - first);
        ring.claim(chunks * kRowBoxes * kBoxBytes);
        for (int chunk = 0; chunk < chunks; ++chunk)
          for (int block = 0; block < kRowBoxes; ++block)
            sm90::load_2d(&operand, ring.stage() + (chunk * kRowBoxes + block) * kBoxBytes, ring.arrived(),
                          column + (first + chunk) * 64, row + block * 64);
        ring.position.advance();
      }
  }

  __device__ void wait_for_operands(Ring ring) const {
    static_assert(!Config::ping_pong || kParts == 1);
    for (int operand = 0; operand < 2; ++operand, ring.position.advance()) ring.wait();
  }

  __device__ NormStore(const Parameters& parameters, std::uint8_t* staging, int consumer)
      : p_(parameters),
        staging_(staging),
        consumer_(consumer),
        thread_(int(threadIdx.x) % 128),
        rows_(min(parameters.m, parameters.control->valid * parameters.sample_rows)),
        column_sums_(parameters.sum_slots, parameters.n, rows_, consumer) {}

  // Before a tile is multiplied: its mask is on its way meanwhile.
  __device__ void prefetch_mask(int row, int column) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
      for (int i = 0; i < kUnits * Config::row_blocks; ++i) {
        const int r = row + i * 16 + thread_ / 8, c = column + chunk * 64 + thread_ % 8 * 8;
        mask_[chunk][i] = r < rows_ && c < p_.n ? __ldg(p_.mask + std::int64_t{r} * (p_.n / 8) + c / 8) : 0;
      }
  }

  __device__ void tile(gemm::Accumulators<Config>& sums, int row, int column, int, Ring& ring) {
    column_sums_.begin(column);
    const int first_box = Config::ping_pong ? 0 : consumer_ * Config::row_blocks;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int stage_of_x = ring.position.stage;
      ring.wait();
      const std::uint8_t* x = ring.stage() + first_box * kBoxBytes;
      ring.position.advance();
      ring.wait();
      const std::uint8_t* other = ring.stage() + first_box * kBoxBytes;
#pragma unroll
      for (int i = 0; i < kPartChunks; ++i)
#pragma unroll
        for (int block = 0; block < Config::row_blocks; ++block) {
          const int chunk = part * kPartChunks + i, offset = (i * kRowBoxes + block) * kBoxBytes;
          if (chunk >= kChunks) continue;
          float* of_box = Config::swapped ? sums[0] + block * 32 : sums[block] + chunk * 32;
          store_box(of_box, row + block * 64, column, chunk, mask_[chunk] + block * kUnits, x + offset,
                    other + offset);
        }
      sm90::async_proxy_fence();  // this thread's reads, before the copy engine writes there
      __syncwarp();
      ring.release(stage_of_x, thread_ % 32);
      ring.release(ring.position.stage, thread_ % 32);
      ring.position.advance();
    }
  }

  __device__ void finish() {
    column_sums_.flush();
    if (thread_ == 0) sm90::store_wait_read<0>();
  }

 private:
  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }

  __device__ void store_box(const float* sums, int row, int tile_column, int chunk, const unsigned* mask,
                            const std::uint8_t* x, const std::uint8_t* other) {
    const int column = tile_column + chunk * 64, warp = thread_ / 32, lane = thread_ % 32;
    if (row >= p_.m || column >= p_.n) return;
    // Nobody uses it: who has got here has passed the last barrier, before which the store from it was waited for.
    std::uint8_t* box = staging_ + staged_ * Config::staging_bytes;
    const bool narrow = (chunk + 1) * 64 > Config::columns;  // half a box; the rest is the next tile's
    if constexpr (Config::swapped)
      gemm::stage_swapped_bf16(sums, box, warp, lane);
    else
      narrow ? gemm::stage_bf16<2>(sums, box, warp, lane) : gemm::stage_bf16<4>(sums, box, warp, lane);
    sync();
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const int r = i * 16 + thread_ / 8, at = r * 128 + (((thread_ % 8) ^ (r & 7)) << 4);
      auto* const values = reinterpret_cast<uint4*>(box + at);
      const uint4 dx = *values, dy2 = *reinterpret_cast<const uint4*>(other + at);
      const unsigned bits = mask[i];
      const uint4 g = {sum(dx.x, dy2.x) & pair(bits), sum(dx.y, dy2.y) & pair(bits >> 2),
                       sum(dx.z, dy2.z) & pair(bits >> 4), sum(dx.w, dy2.w) & pair(bits >> 6)};
      *values = g;
      const int c = column + thread_ % 8 * 8;
      if (narrow && thread_ % 8 < 4 && row + r < p_.m && c < p_.n)  // the copy engine's boxes are 64 wide
        *reinterpret_cast<uint4*>(p_.plain + (std::int64_t{row + r} * p_.n + c) * 2) = g;
    }
    sm90::async_proxy_fence();
    if (thread_ == 0) sm90::store_wait_read<0>();
    sync();
    if (thread_ == 0 && !narrow) {
      sm90::store_3d(&p_.g, box, column, row, 0);
      sm90::store_commit();
    }
    if (!(narrow && warp >= 2))
      column_sums_.template add<false>(chunk, box, x, row);  // a warp has 16 columns
    staged_ ^= 1;
  }
  __device__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    const __nv_bfloat162 both =
        __hadd2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const std::uint32_t&>(both);
  }
  // All bits of the two elements whose bits are the lowest of these.
  __device__ static std::uint32_t pair(unsigned bits) {
    return (bits & 1 ? 0xffffu : 0u) | (bits & 2 ? 0xffff0000u : 0u);
  }

  static constexpr int kUnits = 4;  // of 8 columns, in every 16th row of a box: a thread's
  const Parameters& p_;
  std::uint8_t* staging_;
  int consumer_, thread_, rows_;
  int staged_ = 0;
  unsigned mask_[kChunks][kUnits * Config::row_blocks];  // a bit an element
  gemm::ColumnSums<Config> column_sums_;
};

}  // namespace convoy::kernels::conv
