// Adds up values over all blocks of one launch. Every block writes a partial sum to the workspace.
// The block that finishes last adds these sums in an order that depends on the shape only, so that
// the bits are always the same.
#pragma once

namespace convoy::kernels::cuda {

// Draws a ticket for the calling block. Returns true, in all threads of the block, if it is the
// last of `blocks` tickets. All earlier writes of the other blocks are then visible to this block.
// Drawing the last ticket resets the counter to zero.
__device__ __forceinline__ bool draws_last_ticket(unsigned* ticket, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// Values are the summands of one thread. block_sums() adds them up over the block's threads. Only
// thread 0 gets the right sums. `shared` has one Values per warp.
template <int count, typename T>
struct Values {
  T value[count];
};
template <int threads, int count, typename T>
__device__ __forceinline__ Values<count, T> block_sums(Values<count, T> v, Values<count, T>* shared) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2)
#pragma unroll
    for (int i = 0; i < count; ++i) v.value[i] += __shfl_down_sync(0xffffffffu, v.value[i], lane);
  if constexpr (threads > 32) {
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int warp = 1; warp < threads / 32; ++warp)
#pragma unroll
        for (int i = 0; i < count; ++i) v.value[i] += shared[warp].value[i];
  }
  return v;
}

}  // namespace convoy::kernels::cuda
