// Instructions of Hopper for which CUDA C++ has no function: mbarriers, TMA (the tensor memory
// accelerator), clusters, register reallocation. Each function is one PTX instruction; the manual
// of the PTX ISA explains it under the name in the code. Device code, sm_90a only.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/device/cuda_tensor_map.h"

namespace convoy::kernels::sm90 {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Memory barriers (mbarriers). A phase of a barrier ends after `count` arrivals, when all announced
// bytes have been copied. Phases have the parities 0, 1, 0 and so on. A wait for parity 1 returns
// at once if no phase has ended yet, so a producer does not wait for stages that were never filled.
__device__ inline void barrier_init(std::uint64_t* barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count));
}
// Makes initialised barriers visible to TMA and to the other blocks of the cluster.
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void barrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives at the same barrier in block `rank` of the cluster. The instruction has its default
// scope, because cluster scope would flush L1 and halve the rate of the wgmma kernels.
__device__ inline void barrier_arrive_at(std::uint64_t* barrier, std::uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}
__device__ inline void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// For clusters of blocks: cluster_rank() returns the block's rank in its cluster. cluster_wait()
// waits until all threads of the cluster have called cluster_arrive(). cluster_sync() calls both.
__device__ inline std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ inline void cluster_sync() { cluster_arrive(), cluster_wait(); }

// Programmatic dependent launch. A kernel launched with this attribute may start when all blocks of
// the preceding kernel have called launch_dependents. After wait_for_prerequisites, it sees the
// results of that kernel.
__device__ inline void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ inline void wait_for_prerequisites() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Waits at barrier `id` until `threads` threads of the block have arrived. __syncthreads() uses
// barrier 0.
__device__ inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void prefetch_l2(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// Returns the tensor map of a member. `first` and `others` are the fields of a MemberMap
// (cuda_tensor_map.h).
__device__ __forceinline__ const CUtensorMap* map_of(const CUtensorMap& first, const CUtensorMap* others,
                                                     int member) {
  return member == 0 ? &first : others + (member - 1);
}

// The functions load_* copy from a tensor in global memory to shared memory. Coordinates are in
// elements, innermost first.
__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Copies plain bytes. Both addresses and `bytes` are multiples of 16.
__device__ inline void load_bytes(const void* from, int bytes, void* to, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
__device__ inline void load_2d(const CUtensorMap* map, void* to, std::uint64_t* barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}
__device__ inline void load_3d(const CUtensorMap* map, void* to, std::uint64_t* barrier, int x, int y,
                               int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void load_4d(const CUtensorMap* map, void* to, std::uint64_t* barrier, int x, int y, int z,
                               int u) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(u)
      : "memory");
}
// Loads a box into the shared memory of every block of the cluster that `mask` names, at the same
// offset, and signals the barrier of each of these blocks.
__device__ inline void load_2d_multicast(const CUtensorMap* map, void* to, std::uint64_t* barrier, int x,
                                         int y, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "h"(mask)
      : "memory");
}
// Loads a column of pixels through an im2col map of an NHWC tensor. (c, w, h, n) are the
// coordinates of the first pixel. (s, r) is the offset of the tap in the filter, in width and
// height.
__device__ inline void load_im2col(const CUtensorMap* map, void* to, std::uint64_t* barrier, int c, int w,
                                   int h, int n, std::uint16_t s, std::uint16_t r) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(c), "r"(w), "r"(h), "r"(n), "h"(s), "h"(r)
      : "memory");
}

// store_3d, store_4d and store_im2col copy from shared memory to a tensor in global memory.
// Elements outside the tensor are not written.
__device__ inline void store_3d(const CUtensorMap* map, const void* from, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void store_4d(const CUtensorMap* map, const void* from, int x, int y, int z, int u) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(u)
      : "memory");
}
// Stores a column of pixels through an im2col map of an NHWC tensor, from pixel (n, h, w) on.
__device__ inline void store_im2col(const CUtensorMap* map, const void* from, int c, int w, int h, int n) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(map),
      "r"(shared_address(from)), "r"(c), "r"(w), "r"(h), "r"(n)
      : "memory");
}
__device__ inline void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until TMA has read the sources of all groups of stores except the last `pending` groups.
// The sources may then be overwritten.
template <int pending>
__device__ inline void store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
// Orders ordinary writes to shared memory before later reads by TMA and by tensor cores.
__device__ inline void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Change the number of registers per thread. All threads of a warpgroup must call them.
template <int count>
__device__ inline void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ inline void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

// Store two or four 8x8 matrices of 16-bit elements from registers to shared memory. Each lane
// passes the address of one row or, if transposed, of one column. stmatrix_x2 reads the addresses
// of lanes 0 to 15.
__device__ inline void stmatrix_x2(std::uint32_t address, std::uint32_t r0, std::uint32_t r1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r0), "r"(r1)
               : "memory");
}
template <bool transposed>
__device__ inline void stmatrix_x4(std::uint32_t address, std::uint32_t r0, std::uint32_t r1,
                                   std::uint32_t r2, std::uint32_t r3) {
  if constexpr (transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r0),
                 "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

}  // namespace convoy::kernels::sm90
