#include "tests/kernels/block_places.h"

namespace convoy::kernels::testing {
namespace {

__global__ void count_kernel(unsigned* counts) {
  if (threadIdx.x != 0) return;
  unsigned multiprocessor = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  atomicAdd(counts + multiprocessor, 1u);
  __nanosleep(20000);
}

}  // namespace

void count_blocks(unsigned* counts, int blocks, cudaStream_t stream) {
  count_kernel<<<unsigned(blocks), 256, 0, stream>>>(counts);
}

}  // namespace convoy::kernels::testing
