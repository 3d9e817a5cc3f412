// The epilogue of the wgmma kernels. It scales the accumulators, adds the bias, applies the ReLU,
// stages the result in shared memory as TMA boxes of 64 rows by 128 bytes, and lets TMA store the
// boxes. If TMA cannot store C, or if C's old values are needed, the epilogue stores raw fp32 sums,
// from which another kernel computes C. Column sums are computed from the staged, rounded values.
// With a mask, threads apply it and store the box, and TMA does not. Device code, sm_90a only.
#pragma once

#include <cuda_bf16.h>

#include "kernels/device/cuda_members.cuh"
#include "kernels/gemm/wgmma/sm90_column_sums.cuh"
#include "kernels/gemm/wgmma/sm90_kernel.cuh"
#include "kernels/gemm/wgmma/sm90_staging.cuh"

namespace convoy::kernels::gemm {

// Says where a staged box of a plain matrix belongs in C. Convolutions have other store targets.
struct MatrixStoreTarget {
  __device__ void store(const CUtensorMap* c, const void* from, int column, int row, int split) const {
    sm90::store_3d(c, from, column, row, split);
  }
  // Returns how many of `m` rows count in column sums: all of them.
  __device__ int sum_rows(int m, std::ptrdiff_t) const { return m; }
  // True if the tile has gap rows, which belong to no output. TMA would store these rows, so
  // threads store the box instead. The target then also has `gap`, the number of rows of a gap,
  // first_gap(row), the distance from a row to the start of its line's gap (zero or less inside the
  // gap), next_gap(), the distance from one gap to the next, and element_row(row).
  static constexpr bool has_gaps = false;
};

template <class Config, Extra extra, class Target = MatrixStoreTarget>
class TileStore {
 public:
  struct Parameters {
    CUtensorMap c;  // [splits][m][n]; only raw sums may have more than one split
    const CUtensorMap* c_of_others;
    int m, n;
    float alpha;
    const float* bias;  // null if there is no bias
    bool relu, bf16;
    std::uint8_t* plain;  // C without gaps between rows, for stores that do not use TMA
    // For Extra::mask, a mask of C's type: C is 0 wherever the mask is not above 0.
    const std::uint8_t* mask;
    void* sum_slots;  // for Extra::sums, one slot of Sum per consumer warpgroup: [blocks * 2][2][n]
    Target target;
    std::ptrdiff_t member_stride;
  };

  // One launch may compute several trainings, its members (MemberLayout, kernels/device/kernel.h).
  // `slot` is the number of this consumer warpgroup's slot among those of `member`.
  __device__ TileStore(const Parameters& parameters, int member, int slot, std::uint8_t* staging,
                       int consumer)
      : parameters_(parameters),
        member_(member),
        offset_(parameters.member_stride * member),
        staging_(staging),
        consumer_(consumer),
        thread_(int(threadIdx.x) % 128),
        warp_(thread_ / 32),
        lane_(thread_ % 32),
        adjusts_(parameters.alpha != 1 || parameters.bias != nullptr || parameters.relu),
        column_sums_(moved(static_cast<Sum*>(parameters.sum_slots)), slot, parameters.n,
                     with_sums ? parameters.target.sum_rows(parameters.m, offset_) : 0) {}

  // Returns how many pipeline stages per work item this Store reads tensors from: none.
  __device__ static constexpr int operand_stages(const Parameters&) { return 0; }
  __device__ static void prefetch(const Parameters& p, int member) {
    sm90::prefetch_tensor_map(sm90::map_of(p.c, p.c_of_others, member));
  }
  __device__ static void load_operands(const Parameters&, int, Ring<Config>&, int, int) {}
  __device__ static void wait_for_operands(const Ring<Config>&) {}

  __device__ void tile(Accumulators<Config>& sums, int row, int column, int split, const Ring<Config>&) {
    column_sums_.begin(column);
    if constexpr (extra != Extra::none || Target::has_gaps)
      store_staged<Config::math == Math::bf16>(sums, row, column, split);
    else if (parameters_.bf16)
      store_staged<true>(sums, row, column, split);
    else
      store_staged<false>(sums, row, column, split);
  }

  // Starts loading a tile's mask into L2. Call it before the product, which then hides the load.
  __device__ void prefetch_mask(int row, int column) const {
    if constexpr (with_mask) {
      const int bytes = parameters_.bf16 ? 2 : 4, across = Config::columns * bytes / 128;
      for (int i = thread_; i < Config::consumer_rows * across; i += 128) {
        int r = row + i / across;
        const int c = column + i % across * (128 / bytes);
        if (is_in_c(r) && c < parameters_.n)
          sm90::prefetch_l2(moved(parameters_.mask) + (std::int64_t{r} * parameters_.n + c) * bytes);
      }
    }
  }

  __device__ void finish() {
    column_sums_.flush();
    if (thread_ == 0) sm90::store_wait_read<0>();
  }
  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }

 private:
  static constexpr bool with_sums = extra == Extra::sums, with_mask = extra == Extra::mask;
  using Sum = cuda::MomentSum<Config::element_bytes>;
  // True if threads, and not TMA, store the box.
  static constexpr bool copied = with_mask || Target::has_gaps;
  static_assert(!with_mask || Config::columns % Config::box_columns == 0);
  using Mask = uint4[4];  // the words of a box's mask that one thread reads

  // Translates an address in the memory of member 0 to the memory of the member that this Store
  // computes (MemberLayout, kernels/device/kernel.h).
  template <typename T>
  __device__ T* moved(T* pointer) const {
    return cuda::moved(pointer, offset_);
  }

  __device__ float bias_of(int column) const {
    return parameters_.bias != nullptr && column < parameters_.n ? __ldg(moved(parameters_.bias) + column)
                                                                 : 0.0f;
  }
  // Applies alpha, bias and ReLU to `count` accumulators. Of every four accumulators, numbers 0 and
  // 2 are in one column, and numbers 1 and 3 in the next column. If A and B are exchanged, numbers
  // 0 and 1 are in one column, and numbers 2 and 3 are eight columns further.
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
    Mask masks[2];
#pragma unroll
    for (int block = 0; block < Config::row_blocks; ++block)
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int r = row + block * 64, c = column + chunk * kWidth, box = block * kChunks + chunk;
        // Load the mask of the next box while this box is stored.
        if constexpr (with_mask) {
          constexpr int kBoxes = Config::row_blocks * kChunks;
          if (box == 0) load_mask<bf16>(masks[0], r, c);
          if (box + 1 < kBoxes)
            load_mask<bf16>(masks[(box + 1) % 2], row + (box + 1) / kChunks * 64,
                            column + (box + 1) % kChunks * kWidth);
        }
        if (r >= parameters_.m || c >= parameters_.n) continue;
        const bool narrow = (chunk + 1) * kWidth > Config::columns;
        // With A and B exchanged, the sums of a warp are 16 columns of all 64 rows, and the chunk
        // only selects what is staged. So alpha, bias and ReLU are applied to all sums at once, in
        // the first chunk.
        float* chunk_sums = Config::swapped ? sums[0] + block * 32 : sums[block] + chunk * (kWidth / 2);
        if constexpr (Config::swapped) {
          if (adjusts_ && chunk == 0) adjust<32>(chunk_sums, column);
        } else if (adjusts_) {
          narrow ? adjust<kWidth / 4>(chunk_sums, c) : adjust<kWidth / 2>(chunk_sums, c);
        }
        // This buffer is free: before the last barrier all threads had finished with it, and thread
        // 0 had waited until TMA had read it.
        std::uint8_t* buffer = staging_ + staged_ * Config::staging_bytes;
        if constexpr (Config::swapped)
          bf16 ? stage_swapped_bf16(chunk_sums, buffer, warp_, lane_)
               : stage_swapped_f32(chunk_sums, buffer, chunk, warp_, lane_);
        else if constexpr (bf16)
          narrow ? stage_bf16<2>(chunk_sums, buffer, warp_, lane_)
                 : stage_bf16<4>(chunk_sums, buffer, warp_, lane_);
        else
          stage_f32(chunk_sums, buffer, warp_, lane_);
        if constexpr (with_sums && Target::has_gaps) clear_gaps<bf16>(buffer, r, chunk);
        if constexpr (!copied) {
          sm90::async_proxy_fence();
          if (thread_ == 0) sm90::store_wait_read<0>();
        }
        sync();
        if constexpr (with_mask) {
          copy_masked<bf16>(buffer, r, c, masks[box % 2]);
        } else if (copied || narrow) {
          // The last box of a narrow tile is half full. TMA would store all of it and overwrite the
          // next tile, so threads store the half.
          narrow ? copy<bf16, 4>(buffer, r, c) : copy<bf16, 8>(buffer, r, c);
        } else if constexpr (!copied) {
          if (thread_ == 0) {
            parameters_.target.store(sm90::map_of(parameters_.c, parameters_.c_of_others, member_), buffer, c,
                                     r, split);
            sm90::store_commit();
          }
        }
        // Each warp sums 16 columns of the box. In half a box, warps 2 and 3 have no columns.
        if (with_sums && !(narrow && warp_ >= 2))
          column_sums_.template add<true, Target::has_gaps>(chunk, buffer, buffer, r);
        staged_ ^= 1;
      }
  }

  // Returns whether C has this row. On entry, `row` counts the rows of all tiles, gap rows
  // (Target::has_gaps) included. If C has the row, `row` becomes its number in C.
  __device__ bool is_in_c(int& row) const {
    if (row >= parameters_.m) return false;
    if constexpr (Target::has_gaps) row = parameters_.target.element_row(row);
    return !Target::has_gaps || row >= 0;
  }
  // Sets gap rows (Target::has_gaps) to zero before columns are summed. A warp clears only what
  // it has staged: 16 rows or, with A and B exchanged, 16 columns of all rows.
  template <bool bf16>
  __device__ void clear_gaps(std::uint8_t* buffer, int row, int chunk) const {
    // The number of 16-byte words that each warp has staged in every row.
    constexpr int kUnits = !Config::swapped ? 8 : bf16 ? 2 : 4;
    const int part = Config::swapped ? warp_ * kUnits : 0, first = Config::swapped ? 0 : warp_ * 16,
              end = Config::swapped ? 64 : first + 16, unit = part % 8 + lane_;
    if (Config::swapped && !bf16 && part / 8 != chunk) return;
    __syncwarp();
    const Target& target = parameters_.target;
    for (int gap = first + target.first_gap(row + first); gap < end; gap += target.next_gap())
      for (int r = max(gap, first); r < min(gap + target.gap, end); ++r)
        if (lane_ < kUnits) *reinterpret_cast<uint4*>(buffer + r * 128 + ((unit ^ (r & 7)) << 4)) = {};
  }

  // Calls use(i, word, offset) for each 16-byte word of the box that this thread stores and that
  // lies in C. `units` is the number of words in a row of the box. `offset` is the byte of C at
  // which the word belongs.
  template <bool bf16, int units, class Use>
  __device__ void for_each_unit(const std::uint8_t* buffer, int row, int column, const Use& use) const {
    constexpr int kElements = bf16 ? 8 : 4;
    const int unit = thread_ % units, c = column + unit * kElements;
#pragma unroll
    for (int i = 0; i < units / 2; ++i) {
      const int r = i * (128 / units) + thread_ / units;
      int row_of_c = row + r;
      if (is_in_c(row_of_c) && c < parameters_.n)
        use(i, reinterpret_cast<const uint4*>(buffer + r * 128 + ((unit ^ (r & 7)) << 4)),
            (std::int64_t{row_of_c} * parameters_.n + c) * (16 / kElements));
    }
  }
  template <bool bf16, int units>
  __device__ void copy(const std::uint8_t* buffer, int row, int column) const {
    for_each_unit<bf16, units>(buffer, row, column, [&](int, const uint4* staged, std::int64_t offset) {
      *reinterpret_cast<uint4*>(moved(parameters_.plain) + offset) = *staged;
    });
  }

  template <bool bf16>
  __device__ void load_mask(Mask& mask, int row, int column) const {
    for_each_unit<bf16, 8>(nullptr, row, column, [&](int i, const uint4*, std::int64_t offset) {
      mask[i] = __ldg(reinterpret_cast<const uint4*>(moved(parameters_.mask) + offset));
    });
  }
  template <bool bf16>
  __device__ void copy_masked(const std::uint8_t* buffer, int row, int column, const Mask& mask) const {
    for_each_unit<bf16, 8>(buffer, row, column, [&](int i, const uint4* staged, std::int64_t offset) {
      const uint4 values = *staged, by = mask[i];
      *reinterpret_cast<uint4*>(moved(parameters_.plain) + offset) = {
          masked<bf16>(values.x, by.x), masked<bf16>(values.y, by.y), masked<bf16>(values.z, by.z),
          masked<bf16>(values.w, by.w)};
    });
  }
  template <bool bf16>
  __device__ static std::uint32_t masked(std::uint32_t value, std::uint32_t mask) {
    if constexpr (!bf16) return __uint_as_float(mask) > 0 ? value : 0;
    const auto pair = *reinterpret_cast<const __nv_bfloat162*>(&mask);
    return value & __hgt2_mask(pair, __float2bfloat162_rn(0));
  }

  const Parameters& parameters_;
  int member_;
  std::ptrdiff_t offset_;  // bytes from member 0's memory to the memory of member_
  std::uint8_t* staging_;
  int consumer_, thread_, warp_, lane_;
  bool adjusts_;
  int staged_ = 0;
  ColumnSums<Config, with_sums, Sum> column_sums_;
};

}  // namespace convoy::kernels::gemm
