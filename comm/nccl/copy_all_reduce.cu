#include <algorithm>
#include <utility>

#include "comm/nccl/copy_all_reduce.h"
#include "comm/shares.h"
#include "kernels/device/cuda_kernel.h"

namespace convoy::comm {
namespace {

// A block is small. It must fit into the 4,096 registers and 1.75 KiB of shared memory that a
// persistent matrix product (gemm/wgmma/sm90_kernel.cuh) leaves free on each multiprocessor.
constexpr int kThreads = 128, kRegisters = 32;
constexpr int kAtOnce = 2;  // float4 loads that a thread has in flight
constexpr std::int64_t kOfRound = kAtOnce * kThreads, kMostRounds = 8;

struct Addends {
  const float* of_rank[PeerWindow::kMostRanks];
};

__device__ float4 plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// Adds the addends in rank order. `sum` is the memory of one of the addends. `of_block` is the
// number of float4 values that a block adds.
__global__ void __maxnreg__(kRegisters) add_shares(const __grid_constant__ Addends addends, int ranks,
                                                   float* sum, std::int64_t count, std::int64_t of_block) {
  const std::int64_t begin = blockIdx.x * of_block, end = min(begin + of_block, count / 4);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kOfRound) {
    const auto add = [&](const float* values, auto&& with) {
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
        if (i + j * kThreads < end) with(j, reinterpret_cast<const float4*>(values)[i + j * kThreads]);
    };
    float4 total[kAtOnce];
    add(addends.of_rank[0], [&](int j, float4 values) { total[j] = values; });
    for (int rank = 1; rank < ranks; ++rank)
      add(addends.of_rank[rank], [&](int j, float4 values) { total[j] = plus(total[j], values); });
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (i + j * kThreads < end) reinterpret_cast<float4*>(sum)[i + j * kThreads] = total[j];
  }
  if (const std::int64_t i = count / 4 * 4 + threadIdx.x; blockIdx.x == 0 && i < count) {
    float total = addends.of_rank[0][i];
    for (int rank = 1; rank < ranks; ++rank) total += addends.of_rank[rank][i];
    sum[i] = total;
  }
}

}  // namespace

CopyAllReduce::CopyAllReduce(std::shared_ptr<PeerWindow> window, std::size_t offset, std::int64_t count)
    : window_(std::move(window)), offset_(offset), count_(count) {}

void CopyAllReduce::run(cudaStream_t stream) const {
  // Divide the data into chunks, because the scratch memory must hold what this rank fetches from
  // the other ranks for its share of a chunk.
  const auto chunk = static_cast<std::int64_t>(window_->scratch_bytes() / sizeof(float));
  window_->enter_barrier(PeerWindow::Barrier::before_sum, stream);
  for (std::int64_t first = 0; first < count_; first += chunk)
    sum_chunk(first, std::min(chunk, count_ - first), stream);
  window_->enter_barrier(PeerWindow::Barrier::after_sum, stream);
}

void CopyAllReduce::sum_chunk(std::int64_t first, std::int64_t count, cudaStream_t stream) const {
  const int ranks = window_->size(), rank = window_->rank();
  const std::int64_t begin = share_begin(count, rank, ranks);
  const std::int64_t share = share_begin(count, rank + 1, ranks) - begin;
  if (share == 0) return;
  const auto share_at = [&](int other) {
    return reinterpret_cast<float*>(window_->data(other) + offset_) + first + begin;
  };
  const auto copy = [&](float* to, const float* from) {
    CONVOY_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(share) * sizeof(float),
                                cudaMemcpyDeviceToDevice, stream));
  };
  Addends addends{};
  addends.of_rank[rank] = share_at(rank);
  // Each rank begins with its neighbour, so that no two ranks read from the same rank at the same
  // time.
  auto* fetched = reinterpret_cast<float*>(window_->scratch());
  for (int step = 1; step < ranks; ++step, fetched += (share + 3) / 4 * 4) {
    const int other = (rank + step) % ranks;
    copy(fetched, share_at(other));
    addends.of_rank[other] = fetched;
  }
  using kernels::cuda::ceil_div, kernels::cuda::kMultiprocessors;
  const std::int64_t rounds = ceil_div(share / 4, kOfRound);
  const std::int64_t of_block =
      kOfRound * std::clamp<std::int64_t>(rounds / (2 * kMultiprocessors), 1, kMostRounds);
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(share / 4, of_block));
  add_shares<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(addends, ranks, share_at(rank), share,
                                                                     of_block);
  CONVOY_CUDA(cudaGetLastError());
  for (int step = 1; step < ranks; ++step) copy(share_at((rank + step) % ranks), share_at(rank));
}

}  // namespace convoy::comm
