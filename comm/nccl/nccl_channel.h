// A stream for operations between ranks, and the NCCL communicator that they need: they run in the order of their starts, the same
// on all members, and the watchdog follows them. CUDA builds only. Internal to comm.
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
  // `members`: world ranks; `key` is this channel's on all of them. The communicator may be none, for the copy engines.
  NcclChannel(NcclComm communicator, std::shared_ptr<CommContext> context, std::uint64_t key,
              std::vector<int> members);
  ~NcclChannel() override;
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  // The number under which the watchdog will know operations of this name. Throws std::length_error beyond
  // ProgressMarks::kMostOperations names.
  int number_of(const OperationName& name);

  // Behind what is on `stream`: calls(communicator, stream of the channel), then records `done`.
  template <typename Calls>
  void run(Stream stream, int operation, const CudaEvent& done, Calls&& calls) {
    fork(stream);
    marks_.enter(beside_.get(), operation);
    calls(communicator_.get(), stream_.get());
    done.record(stream_.get());
    done.make_wait(beside_.get());
    marks_.finish(beside_.get());
    // Outside captures who waits for `done` waits for the mark, too, so that those of a later graph come behind it.
    if (!kernels::CapturedGraph::join_later(beside_.get())) done.record(beside_.get());
  }

  const kernels::CudaStream& stream() const { return stream_; }
  // Ends what the device is in; nothing can be run afterwards.
  void abort() noexcept;

  Progress progress() const override;
  std::string failure() const override;

 private:
  void fork(Stream stream) const;
  OperationName name(int operation) const;

  std::shared_ptr<CommContext> context_;
  NcclComm communicator_;
  kernels::CudaStream stream_{kernels::CudaStream::Priority::high};
  // Of the marks, so that they delay nothing: a kernel of one thread may wait for a multiprocessor.
  kernels::CudaStream beside_{kernels::CudaStream::Priority::high};
  CudaEvent forked_, ready_;
  bool aborted_ = false;
  ProgressMarks marks_;
  mutable std::mutex names_mutex_;
  std::vector<OperationName> names_;
};

// Before the first call into NCCL: what its environment variables default to in Convoy.
void set_nccl_defaults();
// Collective over the members: an NCCL communicator among them, by an id from rank 0 over MPI. `purpose` is for
// messages; `blocks`: of a call at most, 0: as many as NCCL likes.
NcclComm connect_all(const Communicator& ranks, std::string_view purpose, int blocks = 0);

}  // namespace convoy::comm
