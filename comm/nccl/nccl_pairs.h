// Point-to-point connections, one for each ordered pair of ranks that exchanges messages: as on MPI the k-th send
// meets the k-th receive and no other traffic stands in its way. CUDA builds only. Internal to comm.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_channel.h"

namespace convoy::comm {

// Both ends take part in connecting, which may also wait for their devices. So a rank connects all of its pairs before the first
// transfer, in an order that is the same on all ranks: nobody then waits for one that waits for it.
class NcclPairs {
 public:
  explicit NcclPairs(const Communicator& ranks) : ranks_(ranks) {}
  NcclPairs(const NcclPairs&) = delete;
  NcclPairs& operator=(const NcclPairs&) = delete;

  // There will be transfers from `sender` to `receiver`, of which this rank is one.
  void prepare(int sender, int receiver) { channels_.try_emplace({sender, receiver}); }
  // The channel of a prepared pair. Outside captures connects all prepared pairs that are not connected yet, which waits until the
  // peer of each does the same; throws std::logic_error inside a capture where this one is not.
  NcclChannel& connected(int sender, int receiver, Stream stream);
  std::vector<NcclChannel*> all_connected() const;

 private:
  std::unique_ptr<NcclChannel> connect(int sender, int receiver);

  const Communicator& ranks_;
  kernels::DeviceBuffer probe_;  // here, to be freed after an abort: that waits for the device
  std::map<std::pair<int, int>, std::unique_ptr<NcclChannel>> channels_;  // null: not connected yet
};

bool is_capturing(Stream stream);

}  // namespace convoy::comm
