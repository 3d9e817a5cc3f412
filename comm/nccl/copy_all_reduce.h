// All-reduce of gradients between GPUs that address each other's memory. Each rank sums one share
// of the data. Copy engines (DMA units) fetch the other ranks' values of this share, a short kernel
// adds them in rank order, and copy engines write the sum to all ranks. As many bytes are moved as
// by a ring (Patarasuk and Yuan, 2009).
//
// No multiprocessor is occupied while data move. NCCL is faster if nothing else runs, but its
// kernels occupy multiprocessors until the last byte arrives, which delays kernels that need all
// multiprocessors.
//
// A sum depends only on the values of the ranks, to the bit, and not on its place in the buffer.
// The same is true on the host. CUDA builds only. Internal to comm.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/nccl/peer_window.h"

namespace convoy::comm {

class CopyAllReduce {
 public:
  // Prepares the sum of `count` floats that begin `offset` bytes after the start of every rank's
  // part of the window. `offset` is a multiple of 16.
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
