// Launches the wgmma kernels (sm90_kernel.cuh). The files that instantiate these kernels
// (kernels/sm90_instances.cmake) include this header.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/device/cuda_error.h"
#include "kernels/gemm/rungs.h"
#include "kernels/gemm/wgmma/sm90_kernel.cuh"
#include "kernels/gemm/wgmma/sm90_store.cuh"

namespace convoy::kernels::gemm {

// With `affine_a`, both consumer warpgroups always work on the same tile if it has enough rows. One
// alone computes A more slowly than memory delivers it.
template <Math math, bool a_mn_major, bool b_mn_major, int tile, bool affine_a = false>
using Sm90Config = TileConfig<
    math, a_mn_major, b_mn_major, kSm90Tiles[tile].rows, kSm90Tiles[tile].columns, kSm90Tiles[tile].cluster,
    kSm90Tiles[tile].ping_pong && !(affine_a && kSm90Tiles[tile].rows > 64) ? Consumers::ping_pong
                                                                            : Consumers::cooperative,
    kSm90Tiles[tile].taps, kSm90Tiles[tile].channels32, affine_a>;

// Starts a kernel in clusters of `cluster` blocks along x. The kernel may begin before the previous
// kernel has ended (programmatic dependent launch).
template <int threads, int shared_bytes, class Kernel, class... Arguments>
void start_early(Kernel* kernel, dim3 grid, int cluster, cudaStream_t stream, const Arguments&... arguments) {
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = unsigned(cluster);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = grid;
  launch.blockDim = dim3(threads);
  launch.dynamicSmemBytes = shared_bytes;
  launch.stream = stream;
  launch.attrs = attributes;
  launch.numAttrs = cluster > 1 ? 2 : 1;
  CONVOY_CUDA(cudaLaunchKernelEx(&launch, kernel, arguments...));
}

// Starts the kernel of one tile shape. `blocks` is the number of blocks that compute one member
// (MemberLayout, kernels/device/kernel.h).
template <class Config, class Loader, class Store>
void start_wgmma(const typename Loader::Parameters& loader, const typename Store::Parameters& store,
                 const TileScheduler& schedule, int blocks, MemberLayout members, cudaStream_t stream) {
  const int clusters = blocks / Config::cluster;
  const Shares shares{clusters, members.count, schedule.work_items() % std::max(clusters, 1)};
  const auto start = [&](auto* kernel, int started) {
    start_early<Config::threads, Config::shared_bytes>(kernel, unsigned(started), Config::cluster, stream,
                                                       loader, store, schedule, shares);
  };
  if (members.count == 1) {
    start(wgmma_kernel<Config, Loader, Store, false>, blocks);
  } else {
    const int most = device_facts().multiprocessors / Config::cluster * Config::cluster;
    start(wgmma_kernel<Config, Loader, Store, true>,
          std::max(blocks, std::min(blocks * members.count, most)));
  }
}

// Calls start() with `number` as a compile-time constant. `number` is an index in `tiles`, which is
// kSm90Tiles or kMnMajorTiles.
template <const auto& tiles, class Start>
void with_tile(int number, const Start& start) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((number == tile ? start(std::integral_constant<int, tile>{}) : void()), ...);
  }
  (std::make_integer_sequence<int, int(std::size(tiles))>{});
}

template <class Config, Extra extra>
void launch_tile(const Sm90Call& call, cudaStream_t stream) {
  using Loader = MatrixLoader<Config>;
  using Store = TileStore<Config, extra>;
  start_wgmma<Config, Loader, Store>({call.a.first, call.b.first, call.a.others, call.b.others},
                                     {call.c.first,
                                      call.c.others,
                                      call.m,
                                      call.n,
                                      call.alpha,
                                      call.bias,
                                      call.relu,
                                      call.bf16,
                                      nullptr,
                                      nullptr,
                                      call.sum_slots,
                                      {},
                                      call.members.stride},
                                     call.schedule, call.blocks, call.members, stream);
}

template <Math math, bool a_mn_major, bool b_mn_major, Extra extra>
void sm90_launch(const Sm90Call& call, cudaStream_t stream) {
  with_tile<kSm90Tiles>(call.tile, [&]<int tile>(std::integral_constant<int, tile>) {
    if constexpr (suits_products(kSm90Tiles[tile]))
      launch_tile<Sm90Config<math, a_mn_major, b_mn_major, tile>, extra>(call, stream);
    else
      throw std::logic_error("no kernel of this tile");
  });
}

}  // namespace convoy::kernels::gemm
