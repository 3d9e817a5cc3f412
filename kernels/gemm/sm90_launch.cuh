// Launches one of the wgmma rung's kernels. Included by the files that instantiate it, sm90_*.cu.
#pragma once

#include <utility>

#include "kernels/device/cuda_error.h"
#include "kernels/gemm/sm90_kernel.cuh"
#include "kernels/gemm/sm90_store.cuh"

namespace convoy::kernels::gemm {

template <Math math, bool a_mn_major, bool b_mn_major, int tile>
using Sm90Config = TileConfig<math, a_mn_major, b_mn_major, kSm90Tiles[tile].rows, kSm90Tiles[tile].columns,
                              kSm90Tiles[tile].cluster,
                              kSm90Tiles[tile].ping_pong ? Consumers::ping_pong : Consumers::cooperative>;

template <class Config>
void launch_tile(const Sm90Call& call, cudaStream_t stream) {
  using Loader = MatrixLoader<Config>;
  using Store = TileStore<Config>;
  auto* kernel = wgmma_kernel<Config, Loader, Store>;
  CONVOY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::shared_bytes));
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = Config::cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(call.blocks));
  launch.blockDim = dim3(Config::threads);
  launch.dynamicSmemBytes = Config::shared_bytes;
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = Config::cluster > 1 ? 1 : 0;
  const typename Loader::Parameters loader{call.a, call.b};
  const typename Store::Parameters store{call.c, call.epilogue, call.m, call.n, call.through_tma, call.sum_slots};
  CONVOY_CUDA(cudaLaunchKernelEx(&launch, kernel, loader, store, call.schedule));
}

template <Math math, bool a_mn_major, bool b_mn_major>
void sm90_launch(const Sm90Call& call, cudaStream_t stream) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    ((call.tile == tile ? launch_tile<Sm90Config<math, a_mn_major, b_mn_major, tile>>(call, stream) : void()), ...);
  }(std::make_integer_sequence<int, int(std::size(kSm90Tiles))>{});
}

}  // namespace convoy::kernels::gemm
