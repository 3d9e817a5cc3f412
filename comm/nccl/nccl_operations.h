// The operations that NcclCollectives prepares, on the streams of a rank's connections. CUDA builds
// only. Internal to comm.
#pragma once

#include <memory>

#include "comm/collectives.h"
#include "comm/nccl/copy_all_reduce.h"
#include "comm/nccl/nccl_connections.h"

namespace convoy::comm {

// Returns an operation that does nothing, for a single rank, whose sum is its own value.
std::unique_ptr<PreparedOperation> no_operation();
std::unique_ptr<PreparedOperation> sum_by_nccl(Connections& connections, void* data, std::int64_t count,
                                               DType type, OperationName name);
std::unique_ptr<PreparedOperation> sum_by_copies(Connections& connections, CopyAllReduce sum,
                                                 OperationName name);

// One end of a transfer.
struct TransferSide {
  int peer = 0;
  bool sends = false;
  void* data = nullptr;
  std::int64_t count = 0;
  DType type = DType::f32;
};
std::unique_ptr<PreparedOperation> transfer_by_nccl(Connections& connections, const TransferSide& side,
                                                    OperationName name);
// Makes one end of a transfer by the sender's copy engine, between ranks that share a window
// (peer_window.h). `number` identifies the transfer (PeerWindow::TransferId). The data of this end
// begin `offset` bytes after the start of this rank's part of the window.
std::unique_ptr<PreparedOperation> transfer_by_copies(Connections& connections, const TransferSide& side,
                                                      std::shared_ptr<PeerWindow> window, int number,
                                                      std::size_t offset, OperationName name);

}  // namespace convoy::comm
