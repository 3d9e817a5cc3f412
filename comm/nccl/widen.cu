#include <cuda_bf16.h>

#include <algorithm>

#include "comm/nccl/widen.h"

namespace convoy::comm {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

template <typename To, typename From>
__global__ void convert(const From* from, To* to, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride)
    to[i] = static_cast<To>(from[i]);
}

}  // namespace

void widen_bf16(const void* from, float* to, std::int64_t count, cudaStream_t stream) {
  convert<<<blocks_for(count), kThreads, 0, stream>>>(static_cast<const __nv_bfloat16*>(from), to, count);
  CONVOY_CUDA(cudaGetLastError());
}

void narrow_to_bf16(const float* from, void* to, std::int64_t count, cudaStream_t stream) {
  convert<<<blocks_for(count), kThreads, 0, stream>>>(from, static_cast<__nv_bfloat16*>(to), count);
  CONVOY_CUDA(cudaGetLastError());
}

}  // namespace convoy::comm
