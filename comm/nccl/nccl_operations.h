// What NcclCollectives prepares: operations on the streams of a rank's connections. CUDA builds only. Internal to comm.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "comm/collectives.h"
#include "comm/communicator.h"
#include "comm/nccl/copy_all_reduce.h"
#include "comm/nccl/nccl_channel.h"
#include "comm/nccl/nccl_pairs.h"
#include "comm/nccl/peer_window.h"

namespace convoy::comm {

// All of a rank's connections.
struct Connections {
  explicit Connections(const Communicator& communicator)
      : ranks(communicator.duplicate(communicator.name() + " devices")), pairs(ranks) {}
  // All at once: an abort waits for the graphs that hold its operations, and those may hold the others' as well.
  void abort() noexcept {
    std::vector<std::thread> aborts;
    for (NcclChannel* channel : {buckets.get(), whole.get()})
      if (channel != nullptr) aborts.emplace_back([channel] { channel->abort(); });
    for (NcclPair* pair : pairs.all()) aborts.emplace_back([pair] { pair->abort(); });
    for (const auto& window : windows)
      aborts.emplace_back([held = window.lock()] {
        if (held != nullptr) held->stop_meeting();
      });
    for (std::thread& abort : aborts) abort.join();
  }

  Communicator ranks;
  std::vector<std::weak_ptr<PeerWindow>> windows;  // as long as somebody has their memory
  std::unique_ptr<NcclChannel> whole, buckets;
  NcclPairs pairs;
};

// For a single rank, whose sum is its own value.
std::unique_ptr<PreparedOperation> no_operation();
std::unique_ptr<PreparedOperation> sum_by_nccl(Connections& connections, void* data, std::int64_t count,
                                               DType type, OperationName name);
std::unique_ptr<PreparedOperation> sum_by_copies(Connections& connections, CopyAllReduce sum,
                                                 OperationName name);

// One end of a transfer over a pair's channel.
struct TransferSide {
  NcclPair& pair;
  bool sends = false;
  void* data = nullptr;
  std::int64_t count = 0;
  DType type = DType::f32;
};
std::unique_ptr<PreparedOperation> transfer_by_nccl(Connections& connections, const TransferSide& side,
                                                    OperationName name);
// Between two windows, by the sender's copy engine. The pair's channel gives the order and tells the watchdog; the receiver tells the
// sender where in its part, over the window's own communicator. `offset`: of the data in this rank's part.
std::unique_ptr<PreparedOperation> transfer_by_copies(Connections& connections, const TransferSide& side,
                                                      std::shared_ptr<PeerWindow> window, int peer,
                                                      int number, std::size_t offset, OperationName name);

}  // namespace convoy::comm
