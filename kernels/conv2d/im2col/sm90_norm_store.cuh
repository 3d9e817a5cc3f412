// The epilogue of backward_data with input_norm (Conv2dProblem). It writes g = (dx + dy2) * mask,
// and computes column sums of g and of g times the norm's input. dy2 and the norm's input are
// loaded into the ring of pipeline stages, like the operands of the product. Device code, sm_90a
// only.
#pragma once

#include "kernels/conv2d/im2col/sm90_im2col.cuh"
#include "kernels/gemm/wgmma/sm90_column_sums.cuh"
#include "kernels/gemm/wgmma/sm90_staging.cuh"

namespace convoy::kernels::conv {

// Says where the results of a tile belong in the tensor, for tiles without gap rows (GapStoreTarget
// is for tiles with gap rows, which belong to no output).
struct NormStoreTarget : conv::StoreTarget {
  __device__ int sum_rows(int m, std::ptrdiff_t offset) const { return valid_rows(*this, m, offset); }
  __device__ void load(const CUtensorMap* map, void* to, std::uint64_t* full, int column, int row) const {
    sm90::load_2d(map, to, full, column, row);
  }
  static constexpr bool has_gaps = false;
};

template <class Config>
class NormStore {
 public:
  using Ring = gemm::Ring<Config>;
  using Target = std::conditional_t<(Config::k_taps > 1), GapStoreTarget, NormStoreTarget>;
  struct Parameters {
    CUtensorMap g;            // [m][n], of the operands' type: bf16 or, in tf32, f32
    CUtensorMap operands[2];  // the norm's input, and dy2
    const CUtensorMap *g_of_others, *operands_of_others[2];
    std::uint8_t* plain;  // the address of g, for threads that store without TMA
    int m, n;
    const std::uint8_t* mask;  // one bit per element, one byte per 16 bytes of g
    float* sum_slots;          // one slot per consumer warpgroup: [blocks * 2][2][n]
    // Rows of samples that are not valid do not count in the sums, and their g is 0.
    Target target;
    std::ptrdiff_t member_stride;
    __device__ const CUtensorMap* g_map(int member) const { return sm90::map_of(g, g_of_others, member); }
    __device__ const CUtensorMap* operand_map(int i, int member) const {
      return sm90::map_of(operands[i], operands_of_others[i], member);
    }
  };

  // The layout of the two operands in the ring of pipeline stages. A chunk is 128 bytes of columns.
  // A stage has some chunks of one operand, with all rows of the tile. Stages of the two operands
  // alternate.
  static constexpr bool kHalves = Config::element_bytes == 2;
  static constexpr int kWidth = Config::box_columns, kBoxBytes = 64 * 128;
  static constexpr int kRowBoxes = Config::rows / 64, kChunks = (Config::columns + kWidth - 1) / kWidth;
  static constexpr int kMostChunks = Config::stage_bytes / (kRowBoxes * kBoxBytes);
  static constexpr int kParts = (kChunks + kMostChunks - 1) / kMostChunks;
  static constexpr int kPartChunks = (kChunks + kParts - 1) / kParts;
  // In ping-pong (Sm90Tile), a warpgroup still holds its last stage of the product while it waits
  // for all stages of the two operands. The ring must be large enough for all of them at once.
  static_assert(Config::cluster == 1 && Config::stages > (Config::ping_pong ? 2 * kParts : 2));

  __device__ static void prefetch(const Parameters& p, int member) {
    sm90::prefetch_tensor_map(p.g_map(member));
    for (int i = 0; i < 2; ++i) sm90::prefetch_tensor_map(p.operand_map(i, member));
  }
  __device__ static constexpr int operand_stages(const Parameters&) { return 2 * kParts; }
  __device__ static void load_operands(const Parameters& p, int member, Ring& ring, int row, int column) {
    for (int first = 0; first < kChunks; first += kPartChunks)
      for (int operand = 0; operand < 2; ++operand) {
        const int chunks = min(kPartChunks, kChunks - first);
        ring.claim(chunks * kRowBoxes * kBoxBytes);
        for (int chunk = 0; chunk < chunks; ++chunk)
          for (int block = 0; block < kRowBoxes; ++block)
            p.target.load(p.operand_map(operand, member),
                          ring.stage() + (chunk * kRowBoxes + block) * kBoxBytes, ring.arrived(),
                          column + (first + chunk) * kWidth, row + block * 64);
        ring.position.advance();
      }
  }

  __device__ void wait_for_operands(Ring ring) const {
    for (int stage = 0; stage < 2 * kParts; ++stage, ring.position.advance()) ring.wait();
  }

  // One launch may compute several trainings, its members (MemberLayout, kernels/device/kernel.h).
  // `slot` is the number of this consumer warpgroup's slot among those of `member`.
  __device__ NormStore(const Parameters& parameters, int member, int slot, std::uint8_t* staging,
                       int consumer)
      : p_(parameters),
        member_(member),
        offset_(parameters.member_stride * member),
        staging_(staging),
        consumer_(consumer),
        thread_(int(threadIdx.x) % 128),
        rows_(parameters.target.sum_rows(parameters.m, offset_)),
        column_sums_(moved(parameters.sum_slots), slot, parameters.n, rows_) {}

  // Starts loading the mask of a tile. Call it before the product, which then hides the load.
  __device__ void prefetch_mask(int row, int column) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
      for (int i = 0; i < kUnits * Config::row_blocks; ++i) {
        int r = row + i * 16 + thread_ / 8;
        const int c = column + chunk * kWidth + thread_ % 8 * kUnit;
        bool there = r < rows_ && c < p_.n;
        if constexpr (Target::has_gaps) {
          r = p_.target.element_row(r);
          there = there && r >= 0;
        }
        mask_[chunk][i] = there ? __ldg(moved(p_.mask) + std::int64_t{r} * (p_.n / kUnit) + c / kUnit) : 0;
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
          float* of_box = Config::swapped ? sums[0] + block * 32 : sums[block] + chunk * (kWidth / 2);
          store_box(of_box, row + block * 64, column, chunk, mask_[chunk] + block * kUnits, x + offset,
                    other + offset);
        }
      // Without this fence TMA could refill the stage before this thread has read it.
      sm90::async_proxy_fence();
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
  __device__ void sync() const { sm90::named_barrier_sync(1 + consumer_, 128); }

 private:
  // Translates an address in the memory of member 0 to the memory of the member that this block
  // computes (MemberLayout, kernels/device/kernel.h).
  template <typename T>
  __device__ T* moved(T* pointer) const {
    return cuda::moved(pointer, offset_);
  }

  __device__ void store_box(const float* sums, int row, int tile_column, int chunk, const unsigned* mask,
                            const std::uint8_t* x, const std::uint8_t* other) {
    const int column = tile_column + chunk * kWidth, warp = thread_ / 32, lane = thread_ % 32;
    if (row >= p_.m || column >= p_.n) return;
    // This buffer is free: before the last barrier, thread 0 has waited until TMA had read it.
    std::uint8_t* box = staging_ + staged_ * Config::staging_bytes;
    // If the box reaches into the next tile, only its first half belongs to this tile.
    const bool narrow = (chunk + 1) * kWidth > Config::columns;
    if constexpr (Config::swapped)
      kHalves ? gemm::stage_swapped_bf16(sums, box, warp, lane)
              : gemm::stage_swapped_f32(sums, box, chunk, warp, lane);
    else if constexpr (kHalves)
      narrow ? gemm::stage_bf16<2>(sums, box, warp, lane) : gemm::stage_bf16<4>(sums, box, warp, lane);
    else
      gemm::stage_f32(sums, box, warp, lane);
    sync();
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const int r = i * 16 + thread_ / 8, at = r * 128 + (((thread_ % 8) ^ (r & 7)) << 4);
      auto* const values = reinterpret_cast<uint4*>(box + at);
      const uint4 dx = *values, dy2 = *reinterpret_cast<const uint4*>(other + at);
      const unsigned bits = mask[i];
      const uint4 g = {masked_sum(dx.x, dy2.x, bits), masked_sum(dx.y, dy2.y, bits >> kWordBits),
                       masked_sum(dx.z, dy2.z, bits >> 2 * kWordBits),
                       masked_sum(dx.w, dy2.w, bits >> 3 * kWordBits)};
      *values = g;
      const int c = column + thread_ % 8 * kUnit;
      int row_of_g = row + r;
      if constexpr (Target::has_gaps) row_of_g = p_.target.element_row(row_of_g);
      // Threads store boxes with gap rows, because TMA cannot skip these rows. Threads also store
      // half a box, because TMA would store the whole box and overwrite the next tile.
      const bool copied = Target::has_gaps || (narrow && thread_ % 8 < 4);
      if (copied && row + r < p_.m && row_of_g >= 0 && c < p_.n)
        *reinterpret_cast<uint4*>(moved(p_.plain) + (std::int64_t{row_of_g} * p_.n + c) * 2) = g;
    }
    if constexpr (!Target::has_gaps) {
      sm90::async_proxy_fence();
      if (thread_ == 0) sm90::store_wait_read<0>();
    }
    sync();
    if constexpr (!Target::has_gaps) {
      if (thread_ == 0 && !narrow) {
        sm90::store_3d(p_.g_map(member_), box, column, row, 0);
        sm90::store_commit();
      }
    }
    if (!(narrow && warp >= 2))
      // Each warp sums 16 columns of the box. In half a box, warps 2 and 3 have no columns.
      column_sums_.template add<false>(chunk, box, x, row);
    staged_ ^= 1;
  }
  // Adds two words of two bf16 elements, or of one f32. Elements whose bit in `bits` is 0 become 0.
  __device__ static std::uint32_t masked_sum(std::uint32_t a, std::uint32_t b, unsigned bits) {
    if constexpr (!kHalves) return bits & 1 ? __float_as_uint(__uint_as_float(a) + __uint_as_float(b)) : 0;
    const __nv_bfloat162 both =
        __hadd2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const std::uint32_t&>(both) &
           ((bits & 1 ? 0xffffu : 0u) | (bits & 2 ? 0xffff0000u : 0u));
  }
  static constexpr int kWordBits = kHalves ? 2 : 1;

  static constexpr int kUnit = kWidth / 8;  // columns in 16 bytes
  // The number of 16-byte units of a box that a thread handles: one in every 16th row.
  static constexpr int kUnits = 4;
  const Parameters& p_;
  int member_;
  std::ptrdiff_t offset_;  // bytes from member 0's memory to the memory of member_
  std::uint8_t* staging_;
  int consumer_, thread_, rows_;
  int staged_ = 0;
  unsigned mask_[kChunks][kUnits * Config::row_blocks];  // one bit per element
  gemm::ColumnSums<Config> column_sums_;
};

// Launches the kernel of a tile for which has_norm_kernel() is true.
template <gemm::Math math>
void start_conv_norm(const Sm90ConvCall& call, cudaStream_t stream) {
  gemm::with_tile<gemm::kSm90Tiles>(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    constexpr gemm::Sm90Tile kTile = gemm::kSm90Tiles[tile];
    if constexpr (has_norm_kernel(kTile, math)) {
      // These kernels read a transposed copy of the filters (transposes()).
      constexpr bool kTransposed = math == gemm::Math::tf32 || gemm::is_narrow(kTile);
      using Config = gemm::Sm90Config<math, false, !kTransposed, tile>;
      static_assert(Config::k_taps == gemm::depth_taps(kTile));
      gemm::start_wgmma<Config, WindowLoader<Config>, NormStore<Config>>(
          loader_parameters(call),
          {call.c.first,
           {call.norm_operands[0].first, call.norm_operands[1].first},
           call.c.others,
           {call.norm_operands[0].others, call.norm_operands[1].others},
           call.plain,
           call.m,
           call.n,
           call.mask,
           static_cast<float*>(call.sum_slots),
           {call.target},
           call.members.stride},
          call.schedule, call.blocks, call.members, stream);
    } else {
      throw std::logic_error("no kernel of this tile");
    }
  });
}

}  // namespace convoy::kernels::conv
