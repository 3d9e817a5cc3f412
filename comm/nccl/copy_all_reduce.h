// The all-reduce of gradients between GPUs that address each other's memory: the copy engines bring every rank the others'
// values of its share, a short kernel adds them in rank order, the copy engines bring the sum to all. The volume is that
// of a ring (Patarasuk and Yuan, 2009), and no multiprocessor is held while data moves. NCCL's kernels are faster alone, but
// hold some multiprocessors until the last byte has come, and a kernel beside them that has a block for every one waits as long.
//
// An element's sum depends on the ranks' values alone, as on the host. CUDA builds only. Internal to comm.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/nccl/peer_window.h"

namespace convoy::comm {

class CopyAllReduce {
 public:
  // `offset` in bytes from the start of every rank's part, a multiple of 16; `count` floats.
  CopyAllReduce(std::shared_ptr<PeerWindow> window, std::size_t offset, std::int64_t count);
  // All of it, on one stream. Can be captured.
  void run(cudaStream_t stream) const;
  const std::shared_ptr<PeerWindow>& window() const { return window_; }

 private:
  void sum_piece(std::int64_t first, std::int64_t count, cudaStream_t stream) const;

  std::shared_ptr<PeerWindow> window_;
  std::size_t offset_;
  std::int64_t count_;
};

}  // namespace convoy::comm
