// Sums over a whole launch in one pass: every block leaves a partial sum in the workspace, and the block that
// finishes last adds them up in an order that depends on the shape alone, so the bits are always the same.
#pragma once

namespace convoy::kernels::cuda {

// True in all threads of the block that draws the last of `blocks` tickets; what the others wrote before is then
// visible to it. The counter is back at zero afterwards.
__device__ __forceinline__ bool draws_last_ticket(unsigned* ticket, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// Sum over the block's kThreads threads, valid in thread 0. `shared` holds a value a warp.
template <int threads, typename T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(0xffffffffu, value, lane);
  if constexpr (threads > 32) {
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int warp = 1; warp < threads / 32; ++warp) value += shared[warp];
  }
  return value;
}

}  // namespace convoy::kernels::cuda
