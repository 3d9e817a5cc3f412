// The wgmma kernel is persistent: each block computes many tiles. A producer warpgroup fills a ring
// of pipeline stages in shared memory by TMA, and two consumer warpgroups multiply the operands in
// the stages. The Loader chooses the operands: parts of two matrices (gemm), or im2col columns and
// filters (convolution). The Store finishes and stores the sums. If it reads further tensors, the
// producer loads them into the ring, too. The structure follows CUTLASS's warp-specialised kernels.
// Device code, sm_90a only.
//
// Consumer warpgroups are cooperative (each computes half of the rows of every tile) or in
// ping_pong (they compute alternate tiles, so that one stores while the other multiplies). The two
// blocks of a cluster compute tiles one above the other. Both need the same B, so each block loads
// half of it and multicasts that half to both.
#pragma once

#include "kernels/gemm/wgmma/sm90_launch.h"
#include "kernels/gemm/wgmma/sm90_ring.cuh"
#include "kernels/gemm/wgmma/wgmma_instructions.cuh"

namespace convoy::kernels::gemm {

// Loads pipeline stages of two plain matrices. A loader loads all stages of one work item
// (TileScheduler).
template <class Config>
class MatrixLoader {
 public:
  struct Parameters {
    CUtensorMap a, b;
    const CUtensorMap *a_of_others, *b_of_others;
    __device__ const CUtensorMap* a_map(int member) const { return sm90::map_of(a, a_of_others, member); }
    __device__ const CUtensorMap* b_map(int member) const { return sm90::map_of(b, b_of_others, member); }
  };
  // Returns the bytes of a stage's B that are not loaded, because no result depends on them.
  __device__ static int left_out_bytes(const Parameters&) { return 0; }
  __device__ static void prefetch(const Parameters& parameters, int member) {
    sm90::prefetch_tensor_map(parameters.a_map(member));
    sm90::prefetch_tensor_map(parameters.b_map(member));
  }
  __device__ MatrixLoader(const Parameters& parameters, int member, int a_tile, int b_tile, int k_begin,
                          std::uint32_t rank = 0)
      : p_(parameters),
        member_(member),
        row_(a_tile * Config::rows),
        column_(b_tile * Config::columns),
        k_(k_begin * Config::depth),
        rank_(int(rank)) {}
  __device__ void load(std::uint8_t* a, std::uint8_t* b, std::uint64_t* full) {
    if constexpr (Config::a_mn_major) {
      for (int i = 0; i < Config::rows / kWidth; ++i)
        sm90::load_2d(p_.a_map(member_), a + i * kBoxBytes, full, row_ + i * kWidth, k_);
    } else {
      sm90::load_2d(p_.a_map(member_), a, full, k_, row_);
    }
    constexpr int kShare = Config::columns / Config::cluster, kDepthShare = Config::depth / Config::cluster;
    if constexpr (Config::b_mn_major) {
      b += rank_ * kDepthShare * 128;
      for (int i = 0; i < Config::columns / kWidth; ++i)
        load_shared(p_.b_map(member_), b + i * kBoxBytes, full, column_ + i * kWidth,
                    k_ + rank_ * kDepthShare);
    } else {
      load_shared(p_.b_map(member_), b + rank_ * kShare * 128, full, k_, column_ + rank_ * kShare);
    }
    k_ += Config::depth;
  }

 private:
  // The width in elements, and the bytes, of a TMA box of an operand whose k is not contiguous.
  static constexpr int kWidth = Config::depth, kBoxBytes = Config::depth * 128;
  __device__ static void load_shared(const CUtensorMap* map, void* to, std::uint64_t* full, int x, int y) {
    if constexpr (Config::cluster == 1)
      sm90::load_2d(map, to, full, x, y);
    else
      sm90::load_2d_multicast(map, to, full, x, y, (1 << Config::cluster) - 1);
  }

  const Parameters& p_;
  const int member_, row_, column_;
  int k_;
  const int rank_;
};

template <class Config>
using Accumulators = float[Config::products][Config::product_columns / 2];

// Multiplies one stage, or one tap of a stage. Zeros beyond the end of the operands are multiplied,
// too, because a jump between wgmma instructions costs up to half of the rate.
template <class Config>
__device__ inline void multiply_stage(Accumulators<Config>& sums, const std::uint8_t* a,
                                      const std::uint8_t* b, bool accumulate) {
  using Instruction = sm90::Wgmma<Config::product_columns>;
  constexpr int kStepA = Config::a_mn_major ? 16 * 128 : 32,
                kStepB = Config::b_mn_major ? 16 * Config::b_row_bytes : 32;
  // 64 rows of A, whether k or m is contiguous.
  constexpr int kRowsOfA = 64 * Config::depth_bytes;
  const std::uint64_t descriptor_a = sm90::matrix_descriptor<Config::a_row_bytes>(a, kRowsOfA);
  const std::uint64_t descriptor_b = sm90::matrix_descriptor<Config::b_row_bytes>(b, Config::b_leading);
#pragma unroll
  for (int step = 0; step < Config::steps; ++step) {
#pragma unroll
    for (int product = 0; product < Config::products; ++product) {
      const std::uint64_t from_a = descriptor_a + ((product * kRowsOfA + step * kStepA) >> 4);
      const std::uint64_t from_b = descriptor_b + ((step * kStepB) >> 4);
      const int add = accumulate || step > 0;
      if constexpr (Config::math == Math::tf32)
        Instruction::tf32(sums[product], Config::swapped ? from_b : from_a, Config::swapped ? from_a : from_b,
                          add);
      else if constexpr (Config::swapped)
        Instruction::template bf16<Config::b_mn_major, Config::a_mn_major>(sums[product], from_b, from_a,
                                                                           add);
      else
        Instruction::template bf16<Config::a_mn_major, Config::b_mn_major>(sums[product], from_a, from_b,
                                                                           add);
    }
  }
}

// Ends the main loop of a work item: hands the turn to the other consumer warpgroup, and waits for
// the products of this one.
template <class Config, class Store>
__device__ __forceinline__ void finish_products(const Ring<Config>& ring, std::uint64_t* next_turn, int lane,
                                                const Store& output) {
  if constexpr (Config::ping_pong) {
    // Let the other consumer warpgroup multiply only after the operands of this epilogue have
    // arrived. Otherwise that warpgroup, which skips the stages of these operands, could mistake an
    // old phase of the barriers for a new one.
    output.wait_for_operands(ring);
    if (lane == 0) sm90::barrier_arrive(next_turn);
  }
  sm90::wgmma_wait<0>();
}

template <class Config, class Store>
__device__ inline void multiply_item(Accumulators<Config>& sums, Ring<Config>& ring, TapRing<Config>& taps,
                                     std::uint64_t* next_turn, int first_row, int k_count, int lane,
                                     const Store& output) {
  int previous = ring.position.stage, previous_tap = 0;
  if (Config::has_tap_ring && taps.resident) taps.position = {};
  for (int k = 0; k < k_count; ++k) {
    ring.wait();
    const std::uint8_t* stage = ring.stage();
#pragma unroll
    for (int tap = 0; tap < Config::k_taps; ++tap) {
      const std::uint8_t* b = stage + Config::a_bytes;
      if constexpr (Config::has_tap_ring) {
        taps.wait();
        b = taps.stage();
      }
      sm90::wgmma_fence();
      multiply_stage<Config>(sums, stage + (first_row + tap) * Config::depth_bytes, b, k > 0 || tap > 0);
      sm90::wgmma_commit();
      if (k > 0 || tap > 0) {
        sm90::wgmma_wait<1>();
        if (tap == 0) ring.release(previous, lane);
        if constexpr (Config::has_tap_ring) taps.release(previous_tap, lane);
      }
      if constexpr (Config::has_tap_ring) {
        previous_tap = taps.position.stage;
        taps.position.advance();
      }
    }
    previous = ring.position.stage;
    ring.position.advance();
  }
  finish_products<Config>(ring, next_turn, lane, output);
  ring.release(previous, lane);
  if constexpr (Config::has_tap_ring) taps.release(previous_tap, lane);
}

// Does the same as multiply_item() with an A in registers, to which it applies `affine`. The
// operands of the work item begin at row `row` of C and at block `k_begin` of k. In
// sm90_affine.cuh.
template <class Config, class Store>
__device__ inline void multiply_affine_item(Accumulators<Config>& sums, Ring<Config>& ring,
                                            std::uint64_t* next_turn, int first_row, int row, int k_begin,
                                            int k_end, const AffineOperand& affine, const Store& output);

// Calls work(member, block, blocks) for each share of work of this block. A share is what one block
// would compute in a launch for a single member (MemberLayout, kernels/device/kernel.h). So the
// sums of a member are added in the same order in every launch. With clusters, "block" means a
// cluster.
template <bool several, class Work>
__device__ __forceinline__ void for_each_share(int cluster, Shares shares, const Work& work) {
  const int first = int(blockIdx.x) / cluster, step = int(gridDim.x) / cluster;
  if constexpr (!several) {
    work(0, first, step);
  } else {
    // Start each member with another share, so that no block gets the longer shares of all members.
    for (int share = first; share < shares.blocks * shares.members; share += step) {
      const int member = share / shares.blocks;
      work(member, (share + member * shares.longer) % shares.blocks, shares.blocks);
    }
  }
}

// Multiplies the work items of one member or, with `several`, of several members (MemberLayout,
// kernels/device/kernel.h). The kernel for one member lacks the code that moves pointers to another
// member's memory, because fetching that code makes a short step 3 % longer.
template <class Config, class Loader, class Store, bool several>
__global__ __maxnreg__(Config::registers) void wgmma_kernel(const __grid_constant__
                                                            typename Loader::Parameters loader,
                                                            const __grid_constant__
                                                            typename Store::Parameters store,
                                                            const TileScheduler schedule,
                                                            const Shares shares) {
  // Shared memory holds, in this order, the stages of `ring`, those of `taps`, the staged boxes of
  // C, and the barriers.
  extern __shared__ std::uint8_t unaligned[];
  std::uint8_t* stages = unaligned + (-sm90::shared_address(unaligned) & 1023u);
  std::uint8_t* of_taps = stages + Config::stages * Config::stage_bytes;
  std::uint8_t* staging = of_taps + Config::tap_stages * Config::b_bytes;
  auto* full = reinterpret_cast<std::uint64_t*>(staging + Config::store_bytes);
  Ring<Config> ring{stages, full, full + Config::stages, {}};
  // In ping_pong, these barriers make the two consumer warpgroups alternate.
  std::uint64_t* turns = ring.empty + Config::stages;
  TapRing<Config> taps{
      {of_taps, turns + 2, turns + 2 + Config::tap_stages, {}},
      !several && schedule.n_tiles() == 1 && schedule.k_blocks() * Config::k_taps <= Config::tap_stages};

  const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
  const std::uint32_t rank = Config::cluster == 1 ? 0 : sm90::cluster_rank();
  // Prefetch tensor maps and initialise barriers.
  if (threadIdx.x == 32) {
    const int member = several ? int(blockIdx.x) / Config::cluster / shares.blocks : 0;
    Loader::prefetch(loader, member);
    Store::prefetch(store, member);
  }
  if (threadIdx.x == 0) {
    constexpr int kReaders = Config::ping_pong ? 1 : 2;
    ring.init(Config::cluster * kReaders * 4);
    if constexpr (Config::has_tap_ring) taps.init(kReaders * 4);
    for (int consumer = 0; consumer < 2; ++consumer) sm90::barrier_init(turns + consumer, 4);
    sm90::barrier_init_fence();
  }
  if constexpr (Config::cluster == 1)
    __syncthreads();
  else
    sm90::cluster_sync();

  // Programmatic dependent launch: this kernel may start before earlier kernels end, so nothing
  // above may read their results.
  sm90::launch_dependents();
  sm90::wait_for_prerequisites();

  const int work_items = schedule.work_items();
  if (warpgroup == 0) {
    // Producer: one thread issues the loads of each work item.
    sm90::registers_decrease<Config::producer_registers>();
    if (threadIdx.x == 0)
      for_each_share<several>(Config::cluster, shares, [&](int member, int first, int stride) {
        for (int index = first; index < work_items; index += stride) {
          const TileScheduler::WorkItem item = schedule.at(index);
          const int m_tile = item.m_tile * Config::cluster + int(rank);
          Loader item_loader(loader, member, m_tile, item.n_tile, item.k_begin, rank);
          for (int k = item.k_begin; k < item.k_end; ++k) {
            // Wait until the stage is free, then issue its loads.
            const int left_out = Loader::left_out_bytes(loader);
            int bytes = Config::loaded_bytes - (Config::has_tap_ring ? 0 : left_out);
            if constexpr (Config::affine_bytes > 0) bytes += item_loader.affine_bytes();
            ring.claim(bytes);
            std::uint8_t* stage = ring.stage();
            if constexpr (Config::has_tap_ring) {
              item_loader.load_a(stage, ring.arrived());
              if (!taps.resident || index == first)
                for (int tap = 0; tap < Config::k_taps; ++tap) {
                  taps.claim(Config::loaded_b_bytes - left_out);
                  item_loader.load_tap(tap, taps.stage(), taps.arrived());
                  taps.position.advance();
                }
              item_loader.advance();
            } else {
              item_loader.load(stage, stage + Config::a_bytes, ring.arrived());
            }
            ring.position.advance();
          }
          // Issue the loads of the tensors that the epilogue reads.
          Store::load_operands(store, member, ring, m_tile * Config::rows, item.n_tile * Config::columns);
        }
      });
  } else {
    // Consumers: multiply each work item, then store it.
    sm90::registers_increase<Config::consumer_registers>();
    const int consumer = warpgroup - 1, lane = int(threadIdx.x) % 32;
    const int first_row = Config::ping_pong ? 0 : consumer * Config::consumer_rows;
    int turn = 0;
    // The first consumer warpgroup starts: its first wait returns at once.
    std::uint32_t parity = consumer == 0;
    for_each_share<several>(Config::cluster, shares, [&](int member, int first, int stride) {
      // A block has two slots of sums for each member. In ping-pong, the first belongs to the
      // consumer that takes the share's first work item, as in a launch for a single member. The
      // previous share decides which consumer that is.
      const int slot = Config::ping_pong ? consumer ^ turn : consumer;
      Store output(store, member, (first * Config::cluster + int(rank)) * 2 + slot,
                   staging + consumer * 2 * Config::staging_bytes, consumer);
      Accumulators<Config> sums;
      for (int index = first; index < work_items; index += stride, turn ^= 1) {
        const TileScheduler::WorkItem item = schedule.at(index);
        if (Config::ping_pong) {
          // Skip the stages of the other consumer warpgroup's work item.
          if (turn != consumer) {
            ring.position.advance(item.k_end - item.k_begin + Store::operand_stages(store));
            if constexpr (Config::has_tap_ring)
              taps.position.advance((item.k_end - item.k_begin) * Config::k_taps);
            continue;
          }
          // Wait for this consumer warpgroup's turn.
          sm90::barrier_wait(turns + consumer, parity);
          parity ^= 1;
        }
        const int m_tile = item.m_tile * Config::cluster + int(rank);
        const int row = m_tile * Config::rows + first_row, column = item.n_tile * Config::columns;
        // Main loop: multiply all stages of the work item.
        output.prefetch_mask(row, column);
        if constexpr (Config::affine_a)
          multiply_affine_item<Config>(sums, ring, turns + (consumer ^ 1), first_row, row, item.k_begin,
                                       item.k_end, loader.affine_of(member), output);
        else
          multiply_item<Config>(sums, ring, taps, turns + (consumer ^ 1), first_row,
                                item.k_end - item.k_begin, lane, output);
        // Epilogue: finish and store the sums.
        output.tile(sums, row, column, item.split, ring);
      }
      output.finish();
      // TMA may still be reading the last box, which the next member's first box would overwrite.
      if constexpr (several) output.sync();
    });
  }
  // The other block of the cluster may still write into this block's shared memory.
  if constexpr (Config::cluster > 1) {
    __syncwarp();
    sm90::cluster_sync();
  }
}

}  // namespace convoy::kernels::gemm
