// The rings of pipeline stages of the wgmma kernel (sm90_kernel.cuh): the producer fills a stage
// when all consumers have read it, and consumers read it when its bytes have arrived. Device code,
// sm_90a only.
#pragma once

#include "kernels/device/cuda_sm90.cuh"
#include "kernels/gemm/wgmma/sm90_tile.cuh"

namespace convoy::kernels::gemm {

// A position in the ring of pipeline stages. `parity` changes on each round.
template <int stages>
struct RingPosition {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void advance(int count) {
    const int position = stage + count;
    parity ^= (position / stages) & 1;
    stage = position % stages;
  }
};

// Tells every block of the cluster that this warp has read the stage. The stage may be refilled
// when all warps have done so.
template <int cluster>
__device__ inline void release_stage(std::uint64_t* empty, int lane) {
  if constexpr (cluster == 1) {
    if (lane == 0) sm90::barrier_arrive(empty);
  } else {
    if (lane < cluster) sm90::barrier_arrive_at(empty, lane);
  }
}

// The ring of pipeline stages. The producer and each consumer warpgroup have their own `position`.
template <int count, int stage_bytes, int cluster>
struct StageRing {
  std::uint8_t* stages;
  // Two barriers for each stage. A phase of `full` ends when the stage's bytes have arrived. A
  // phase of `empty` ends when all warps have read the stage.
  std::uint64_t *full, *empty;
  RingPosition<count> position;

  // Call this from one thread. `arrivals` is the number of warps that read a stage.
  __device__ void init(int arrivals) const {
    for (int stage = 0; stage < count; ++stage) {
      sm90::barrier_init(full + stage, 1);
      sm90::barrier_init(empty + stage, arrivals);
    }
  }
  __device__ std::uint8_t* stage() const { return stages + position.stage * stage_bytes; }
  __device__ std::uint64_t* arrived() const { return full + position.stage; }
  // The producer calls this: it waits until the stage is free, and announces how many bytes will
  // arrive.
  __device__ void claim(int bytes) const {
    sm90::barrier_wait(empty + position.stage, position.parity ^ 1);
    sm90::barrier_expect(arrived(), bytes);
  }
  // wait() waits until the bytes of the stage have arrived. A consumer calls release() when its
  // warp has read them.
  __device__ void wait() const { sm90::barrier_wait(arrived(), position.parity); }
  __device__ void release(int stage, int lane) const { release_stage<cluster>(empty + stage, lane); }
};
template <class Config>
using Ring = StageRing<Config::stages, Config::stage_bytes, Config::cluster>;
// The ring of B for tiles whose taps share pixels (Sm90Tile::taps). A stage holds one tap. If
// `resident` is set, all of B fits into the ring, and is loaded only once for all work items.
template <class Config>
struct TapRing : StageRing<std::max(Config::tap_stages, 1), Config::b_bytes, 1> {
  bool resident;
};

}  // namespace convoy::kernels::gemm
