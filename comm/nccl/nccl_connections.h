// All that connects a rank with the others of a communicator over NCCL or by its copy engines. CUDA builds only. Internal to
// comm.
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

  // Those of all communicators of this process at once: an abort waits for the graphs that hold what it aborts, and those may
  // hold the others' operations as well. For the end of a job, by the thread that opened them; the destructor does so while an
  // exception unwinds the stack.
  static void abort_all() noexcept;

  // Of transfers from one rank to another by the copy engines: where they serve, NCCL need not connect the two.
  NcclChannel& copies(int sender, int receiver);

  NcclChannel& of_gradients() const { return buckets != nullptr ? *buckets : *whole; }

  Communicator ranks;
  std::vector<std::weak_ptr<PeerWindow>> windows;  // as long as somebody has their memory
  std::unique_ptr<NcclChannel> whole;              // null: of a single rank
  std::unique_ptr<NcclChannel> buckets;            // null also where sums are small, and the whole's
  NcclPairs pairs;

 private:
  std::map<std::pair<int, int>, NcclChannel> copies_;
  bool aborted_ = false;
};

}  // namespace convoy::comm
