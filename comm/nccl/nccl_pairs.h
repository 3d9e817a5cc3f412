// Point-to-point connections, one for each ordered pair of ranks that exchanges messages: as on MPI the k-th send
// meets the k-th receive and no other traffic stands in its way. CUDA builds only. Internal to comm.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <utility>

#include "comm/nccl/nccl_channel.h"

namespace convoy::comm {

// Both ends have to take part in connecting, and ranks may prepare and start their transfers in any order. So the
// sender makes the id and connects in the background from the beginning; the receiver, at its first start, waits
// for nothing but the sender's having prepared.
class NcclPair {
 public:
  NcclPair(const Communicator& ranks, int sender, int receiver);
  ~NcclPair();
  NcclPair(const NcclPair&) = delete;
  NcclPair& operator=(const NcclPair&) = delete;

  // The connected channel. Blocks, at the first call, until the peer has prepared its end; throws std::logic_error
  // when that call comes inside a capture.
  NcclChannel& channel(Stream stream);
  void abort() noexcept;

 private:
  bool sends() const { return ranks_.rank() == sender_; }
  void connect();
  void settle(ncclResult_t status, ncclComm_t communicator) const;

  const Communicator& ranks_;
  int sender_, receiver_, device_ = 0;
  OperationName name_;
  ncclUniqueId id_{};
  MPI_Request id_message_ = MPI_REQUEST_NULL;
  std::atomic<bool> stopped_ = false;
  kernels::DeviceBuffer probe_;
  std::unique_ptr<NcclChannel> channel_;
  std::future<void> connecting_;  // the sender's; its destructor waits for the thread
  bool connected_ = false;
};

// The pairs of this rank, made when first asked for.
class NcclPairs {
 public:
  explicit NcclPairs(const Communicator& ranks) : ranks_(ranks) {}
  NcclPair& between(int sender, int receiver) {
    return pairs_.try_emplace({sender, receiver}, ranks_, sender, receiver).first->second;
  }
  std::vector<NcclPair*> all() {
    std::vector<NcclPair*> pairs;
    for (auto& [ends, pair] : pairs_) pairs.push_back(&pair);
    return pairs;
  }

 private:
  const Communicator& ranks_;
  std::map<std::pair<int, int>, NcclPair> pairs_;
};

bool is_capturing(Stream stream);

// A transfer's NCCL call may return before it is enqueued, because a pair's communicator does not block.
void settle(ncclResult_t status, std::string_view operation, ncclComm_t communicator);

}  // namespace convoy::comm
