// Point-to-point connections, one for each ordered pair of ranks that exchanges messages. As with
// MPI, the k-th send of a pair matches its k-th receive. No other traffic delays these messages.
// CUDA builds only. Internal to comm.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_channel.h"

namespace convoy::comm {

// To connect a pair, both of its ranks must take part, and each may wait for its device. A rank
// therefore connects all its pairs before the first transfer, in an order that is the same on all
// ranks, so that no cycle of waits arises.
class NcclPairs {
 public:
  explicit NcclPairs(const Communicator& ranks) : ranks_(ranks) {}
  NcclPairs(const NcclPairs&) = delete;
  NcclPairs& operator=(const NcclPairs&) = delete;

  // Announces transfers from `sender` to `receiver`; this rank is one of the two.
  void prepare(int sender, int receiver) { channels_.try_emplace({sender, receiver}); }
  // Returns the channel of a prepared pair. Outside captures it first connects all prepared pairs,
  // which waits for their peers. Inside a capture it throws std::logic_error if the pair is not
  // connected.
  NcclChannel& connected(int sender, int receiver, Stream stream);
  std::vector<NcclChannel*> all_connected() const;

 private:
  std::unique_ptr<NcclChannel> connect(int sender, int receiver);

  const Communicator& ranks_;
  // The memory of the one byte that is sent to open a connection. It is a member so that it is
  // freed after an abort, because freeing waits for the device.
  kernels::DeviceBuffer probe_;
  // The channel is null until the pair is connected.
  std::map<std::pair<int, int>, std::unique_ptr<NcclChannel>> channels_;
};

bool is_capturing(Stream stream);

}  // namespace convoy::comm
