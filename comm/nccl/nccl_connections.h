// All connections between this rank and the other ranks of a communicator, by NCCL and by copy
// engines. CUDA builds only. Internal to comm.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/nccl_channel.h"
#include "comm/nccl/nccl_pairs.h"
#include "comm/nccl/peer_window.h"

namespace convoy::comm {

struct Connections {
  explicit Connections(const Communicator& communicator);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Aborts all connections of this process together. Aborting a single one would wait for CUDA
  // graphs that may contain operations of the others. Call it on the thread that opened the
  // connections. The destructor calls it while an exception unwinds the stack.
  static void abort_all() noexcept;

  // Returns the channel of transfers by copy engines from `sender` to `receiver`. It has no NCCL
  // communicator.
  NcclChannel& copies(int sender, int receiver);

  NcclChannel& of_gradients() const { return buckets != nullptr ? *buckets : *whole; }

  Communicator ranks;
  // The memory that ranks share (peer_window.h). The users of a window keep it alive.
  std::vector<std::weak_ptr<PeerWindow>> windows;
  std::unique_ptr<NcclChannel> whole;  // null for a single rank
  // Null for a single rank and for Sums::small. Sums of gradients then use `whole`.
  std::unique_ptr<NcclChannel> buckets;
  NcclPairs pairs;

 private:
  std::map<std::pair<int, int>, NcclChannel> copies_;
  bool aborted_ = false;
};

}  // namespace convoy::comm
