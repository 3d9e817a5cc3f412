// A CUDA stream for operations between ranks, with its NCCL communicator. All ranks start the
// operations of a channel in the same order, and they run in that order. At the start and the end
// of each operation, a second stream advances counters that the watchdog reads (progress_marks.h).
// CUDA builds only. Internal to comm.
#pragma once

#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "comm/nccl/nccl_check.h"
#include "comm/nccl/progress_marks.h"

namespace convoy::comm {

using kernels::CudaEvent;
using kernels::Stream;

class NcclChannel : public DeviceOperations {
 public:
  // `members` are world ranks. `key` is the same on all members. `communicator` is empty if only
  // copy engines are used.
  NcclChannel(NcclComm communicator, std::shared_ptr<CommContext> context, std::uint64_t key,
              std::vector<int> members);
  ~NcclChannel() override;
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  // Returns the number by which the counters (progress_marks.h) identify the operation with this
  // name. Throws std::length_error for more than ProgressMarks::kMostOperations names.
  int number_of(const OperationName& name);

  // Runs one operation. `calls`(NCCL communicator, stream of the channel) enqueues its work. The
  // operation begins after the work on `stream`, and `done` is recorded at its end.
  template <typename Calls>
  void run(Stream stream, int operation, const CudaEvent& done, Calls&& calls) {
    fork(stream);
    marks_.enter(mark_stream_.get(), operation);
    calls(communicator_.get(), stream_.get());
    done.record(stream_.get());
    done.make_wait(mark_stream_.get());
    marks_.finish(mark_stream_.get());
    // Outside a capture, record `done` again after the counters have advanced. Work that waits for
    // `done`, such as the next graph, then also comes after that.
    if (!kernels::CapturedGraph::join_later(mark_stream_.get())) done.record(mark_stream_.get());
  }

  const kernels::CudaStream& stream() const { return stream_; }
  // Aborts the operation that the device runs, by ncclCommAbort. Nothing can be run afterwards.
  void abort() noexcept;

  Progress progress() const override;
  std::string failure() const override;

 private:
  void fork(Stream stream) const;
  OperationName name(int operation) const;

  std::shared_ptr<CommContext> context_;
  NcclComm communicator_;
  kernels::CudaStream stream_{kernels::CudaStream::Priority::high};
  // The counters (marks) are advanced on a stream of their own. The kernel that does so may have to
  // wait for a free multiprocessor and must not delay the operations.
  kernels::CudaStream mark_stream_{kernels::CudaStream::Priority::high};
  CudaEvent forked_, ready_;
  bool aborted_ = false;
  ProgressMarks marks_;
  mutable std::mutex names_mutex_;
  std::vector<OperationName> names_;
};

// Sets NCCL's environment variables to Convoy's defaults. Call it before the first call into NCCL.
void set_nccl_defaults();
// Makes an NCCL communicator, with an id that rank 0 sends by MPI. Collective. `purpose` appears in
// messages. `blocks` limits the GPU blocks of an NCCL call; 0 leaves their number to NCCL.
NcclComm connect_all(const Communicator& ranks, std::string_view purpose, int blocks = 0);

}  // namespace convoy::comm
