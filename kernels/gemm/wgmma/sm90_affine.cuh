// Multiplies with an A to which a function of each channel is applied first (AffineOperand), such
// as a batch norm and its ReLU. Consumers read A from a pipeline stage into registers by ldmatrix,
// apply the function, round, and pass the registers to wgmma. While the products of one group of
// registers run, the next group is computed. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include "kernels/gemm/mma_sync/mma_instructions.cuh"
#include "kernels/gemm/wgmma/sm90_kernel.cuh"

namespace convoy::kernels::gemm {

// The scale and the shift of two values that share a register.
struct AffinePair {
  float scale_low, shift_low, scale_high, shift_high;
};

// Applies the function to two bf16 values in one register.
__device__ __forceinline__ Word apply_affine(Word word, const AffinePair& by, __nv_bfloat162 least,
                                             __nv_bfloat162 most) {
  const float low = fmaf(__uint_as_float(word << 16), by.scale_low, by.shift_low),
              high = fmaf(__uint_as_float(word & 0xffff0000u), by.scale_high, by.shift_high);
  const __nv_bfloat162 pair = __hmin2_nan(__hmax2_nan(__floats2bfloat162_rn(low, high), least), most);
  return *reinterpret_cast<const Word*>(&pair);
}

// Reads and computes the part of A that the calling thread passes to wgmma. The registers of an
// instruction are a 16 x 16 part of A, as mma_instructions.cuh describes them.
template <class Config>
class AffineReader {
 public:
  // A group is the part of a stage that is in registers at one time: one of several blocks of 64
  // rows or, if a warpgroup has only one such block, half of the stage's k.
  static constexpr int kGroups = Config::row_blocks > 1 ? Config::row_blocks : 2;
  static constexpr int kSteps = Config::row_blocks > 1 ? Config::steps : Config::steps / 2;
  static_assert(Config::math == Math::bf16 && Config::depth == 64 && kGroups % 2 == 0);
  __device__ static constexpr int block_of(int group) { return Config::row_blocks > 1 ? group : 0; }
  __device__ static constexpr int step_of(int group) { return Config::row_blocks > 1 ? 0 : group * kSteps; }

  // `row` is the row of C, and `first_row` the row of the stage, with which this warpgroup begins.
  __device__ AffineReader(const AffineOperand& affine, int first_row, int row)
      : affine_(affine),
        least_(__float2bfloat162_rn(affine.least)),
        most_(__float2bfloat162_rn(affine.most)),
        lane_(int(threadIdx.x) % 32) {
    const int warp = int(threadIdx.x) % 128 / 32, eight = lane_ / 8;
    if constexpr (Config::a_mn_major) {
      // A row of the stage is a value of k with 64 channels, one box after the other.
      const int k = lane_ % 8 + eight / 2 * 8;
      offset_ = first_row * 128 + k * 128;
      chunk_ = (warp * 2 + eight % 2) ^ (lane_ % 8);
#pragma unroll
      for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 one = of_channel(row + block * 64 + warp * 16 + lane_ / 4 + i * 8);
          pairs_[block * 2 + i] = {one.x, one.y, one.x, one.y};
        }
    } else {
      const int r = warp * 16 + lane_ % 8 + eight % 2 * 8;
      offset_ = (first_row + r) * 128;
      chunk_ = eight / 2;
    }
  }

  // Reads the scales and shifts of block `k` of the channels from its stage, if they are not the
  // same for all stages. The number of channels is even, so a pair exists as a whole or not at all.
  __device__ void read_pairs(const std::uint8_t* stage, int k) {
    if constexpr (!Config::a_mn_major) {
      const auto* pairs = reinterpret_cast<const float4*>(stage + Config::a_bytes + Config::b_bytes);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const int pair = i * 4 + lane_ % 4;
        const float4 both = k * Config::depth + pair * 2 < affine_.channels ? pairs[pair] : float4{};
        pairs_[i] = {both.x, both.y, both.z, both.w};
      }
    }
  }

  // Reads and computes a group of the stage `a`.
  __device__ void read(Word (&words)[kSteps][4], const std::uint8_t* a, int group) const {
    const Word from = sm90::shared_address(a) + Word(offset_ + block_of(group) * 64 * 128);
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int step = step_of(group) + i;
      if constexpr (Config::a_mn_major)
        load_matrices<true>(words[i], from + Word(step * 16 * 128 + (chunk_ << 4)));
      else
        load_matrices<false>(words[i], from + Word(((step * 2 + chunk_) ^ (lane_ % 8)) << 4));
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        words[i][j] = apply_affine(words[i][j],
                                   Config::a_mn_major ? pairs_[block_of(group) * 2 + j % 2]
                                                      : pairs_[(step_of(group) + i) * 2 + j / 2],
                                   least_, most_);
  }

 private:
  static constexpr int kPairs = Config::a_mn_major ? Config::row_blocks * 2 : Config::steps * 2;
  __device__ float2 of_channel(int channel) const {
    return channel < affine_.channels ? __ldg(reinterpret_cast<const float2*>(affine_.of_channels) + channel)
                                      : float2{};
  }

  const AffineOperand affine_;
  const __nv_bfloat162 least_, most_;
  const int lane_;
  int offset_, chunk_;  // in bytes, and in 16 bytes
  AffinePair pairs_[kPairs];
};

template <class Config, class Store>
__device__ inline void multiply_affine_item(Accumulators<Config>& sums, Ring<Config>& ring,
                                            std::uint64_t* next_turn, int first_row, int row, int k_begin,
                                            int k_end, const AffineOperand& affine, const Store& output) {
  using Reader = AffineReader<Config>;
  using Instruction = sm90::Wgmma<Config::product_columns>;
  constexpr int kStepB = Config::b_mn_major ? 16 * Config::b_row_bytes : 32;
  const int lane = int(threadIdx.x) % 32;
  Reader reader(affine, first_row, row);
  Word words[2][Reader::kSteps][4] = {};
  int previous = ring.position.stage;
  for (int k = k_begin; k < k_end; ++k) {
    ring.wait();
    const std::uint8_t* stage = ring.stage();
    reader.read_pairs(stage, k);
    const std::uint64_t b =
        sm90::matrix_descriptor<Config::b_row_bytes>(stage + Config::a_bytes, Config::b_leading);
#pragma unroll
    for (int group = 0; group < Reader::kGroups; ++group) {
      // Wait until the products of the last group but one have read their registers.
      sm90::wgmma_wait<1>();
      sm90::keep(words[group % 2]);
      if (group == 1 && k > k_begin) ring.release(previous, lane);
      reader.read(words[group % 2], stage, group);
      sm90::wgmma_fence();
#pragma unroll
      for (int i = 0; i < Reader::kSteps; ++i) {
        const int step = Reader::step_of(group) + i;
        Instruction::template bf16<Config::b_mn_major>(sums[Reader::block_of(group)], words[group % 2][i],
                                                       b + ((step * kStepB) >> 4), k > k_begin || step > 0);
      }
      sm90::wgmma_commit();
    }
    previous = ring.position.stage;
    ring.position.advance();
  }
  finish_products<Config>(ring, next_turn, lane, output);
  sm90::keep(words[0]), sm90::keep(words[1]);
  ring.release(previous, lane);
}

}  // namespace convoy::kernels::gemm
