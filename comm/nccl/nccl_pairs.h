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

// Both ranks of a pair must take part to connect it, and each may have to wait for its device. So a
// rank connects all its pairs before the first transfer. The order is the same on all ranks, so
// that there is no cycle of waits.
class NcclPairs {
 public:
  explicit NcclPairs(const Communicator& ranks) : ranks_(ranks) {}
  NcclPairs(const NcclPairs&) = delete;
  NcclPairs& operator=(const NcclPairs&) = delete;

  // Announces transfers from `sender` to `receiver`. This rank must be one of the two.
  void prepare(int sender, int receiver) { channels_.try_emplace({sender, receiver}); }
  // Returns the channel of a prepared pair. Outside captures it first connects all prepared pairs,
  // which waits for their peers. Inside a capture it throws std::logic_error if the pair is not
  // connected.
  NcclChannel& connected(int sender, int receiver, Stream stream);
  std::vector<NcclChannel*> all_connected() const;

 private:
  std::unique_ptr<NcclChannel> connect(int sender, int receiver);

  const Communicator& ranks_;
  // The memory of the one byte that is sent to open a connection. It must not be freed when
  // connect() throws, because freeing waits for the device, and the device may wait for another
  // rank for ever. As a member it is freed only after the connections have been aborted.
  kernels::DeviceBuffer probe_;
  // The channel is null until the pair is connected.
  std::map<std::pair<int, int>, std::unique_ptr<NcclChannel>> channels_;
};

bool is_capturing(Stream stream);

}  // namespace convoy::comm
