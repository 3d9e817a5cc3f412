// All-reduce of gradients between GPUs that address each other's memory. Copy engines bring each
// rank the other ranks' values of its share, a short kernel adds them in rank order, and copy
// engines bring the sum to all ranks. As many bytes are moved as by a ring (Patarasuk and Yuan,
// 2009).
//
// No multiprocessor is held while data moves. NCCL is faster alone, but its kernels hold
// multiprocessors until the last byte arrives, which delays kernels that need all of them.
//
// The bits of an element depend on the ranks' values only, as on the host. CUDA builds only.
// Internal to comm.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/nccl/peer_window.h"

namespace convoy::comm {

class CopyAllReduce {
 public:
  // Prepares the sum of `count` floats that begin `offset` bytes after the start of every rank's
  // part. `offset` is a multiple of 16.
  CopyAllReduce(std::shared_ptr<PeerWindow> window, std::size_t offset, std::int64_t count);
  // Enqueues the whole operation on one stream. A graph can capture it.
  void run(cudaStream_t stream) const;
  const std::shared_ptr<PeerWindow>& window() const { return window_; }

 private:
  void sum_chunk(std::int64_t first, std::int64_t count, cudaStream_t stream) const;

  std::shared_ptr<PeerWindow> window_;
  std::size_t offset_;
  std::int64_t count_;
};

}  // namespace convoy::comm
