#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <stdexcept>
#include <thread>

#include "comm/mpi_check.h"
#include "comm/nccl/nccl_pairs.h"

namespace convoy::comm {
namespace {

constexpr int kIdTag = 1;

// A receive may stand ready long before its message, and holds multiprocessors meanwhile. All pairs of a rank together leave
// half of them to what the message waits for: else it might never come.
int blocks_of_pair(int ranks) {
  constexpr unsigned kOfAllPairs = 64, kOfPair = 16;
  // NCCL takes the next power of two.
  return static_cast<int>(
      std::bit_floor(std::clamp(kOfAllPairs / (2U * static_cast<unsigned>(ranks - 1)), 1U, kOfPair)));
}

template <typename Stopped>
void settle_unless(Stopped&& stopped, ncclResult_t status, std::string_view operation,
                   ncclComm_t communicator) {
  while (status == ncclInProgress && !stopped()) {
    std::this_thread::yield();
    check_nccl(ncclCommGetAsyncError(communicator, &status), operation, communicator);
  }
  if (status != ncclInProgress) check_nccl(status, operation, communicator);
}

}  // namespace

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CONVOY_CUDA(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

void settle(ncclResult_t status, std::string_view operation, ncclComm_t communicator) {
  settle_unless([] { return false; }, status, operation, communicator);
}

NcclPair::NcclPair(const Communicator& ranks, int sender, int receiver)
    : ranks_(ranks),
      sender_(sender),
      receiver_(receiver),
      name_("NCCL connection", fmt::format("from rank {} to rank {}", sender, receiver)),
      probe_(1) {
  CONVOY_CUDA(cudaGetDevice(&device_));
  const MpiSection section(ranks_.context());
  const MPI_Comm handle = ranks_.handle();
  if (sends()) {
    check_nccl(ncclGetUniqueId(&id_), name_.view());
    check_mpi(
        MPI_Isend(id_.internal, NCCL_UNIQUE_ID_BYTES, MPI_CHAR, receiver_, kIdTag, handle, &id_message_),
        name_.view());
    connecting_ = std::async(std::launch::async, [this] { connect(); });
  } else {
    check_mpi(MPI_Irecv(id_.internal, NCCL_UNIQUE_ID_BYTES, MPI_CHAR, sender_, kIdTag, handle, &id_message_),
              name_.view());
  }
}

NcclPair::~NcclPair() {
  // Prepared but never started: the other end may not come any more.
  if (!connected_) abort();
  int finalized = 0;
  if (id_message_ == MPI_REQUEST_NULL || std::uncaught_exceptions() > 0) return;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  if (!sends()) MPI_Cancel(&id_message_);
  MPI_Request_free(&id_message_);
}

void NcclPair::abort() noexcept {
  stopped_ = true;
  if (connecting_.valid()) connecting_.wait();
  if (channel_) channel_->abort();
}

void NcclPair::settle(ncclResult_t status, ncclComm_t communicator) const {
  settle_unless([this] { return stopped_.load(); }, status, name_.view(), communicator);
  if (stopped_) throw NcclError(fmt::format("{}: given up", name_.view()));
}

// Blocks until the other end does the same, or abort() is called.
void NcclPair::connect() {
  CONVOY_CUDA(cudaSetDevice(device_));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = blocks_of_pair(ranks_.size());
  ncclComm_t handle = nullptr;
  const ncclResult_t begun = ncclCommInitRankConfig(&handle, 2, id_, sends() ? 0 : 1, &config);
  NcclComm communicator(handle);
  settle(begun, handle);
  const auto pair = static_cast<std::uint64_t>(sender_ * ranks_.size() + receiver_);
  const std::vector<int>& world = ranks_.world_ranks();
  std::vector<int> members{world[static_cast<std::size_t>(sender_)],
                           world[static_cast<std::size_t>(receiver_)]};
  channel_ = std::make_unique<NcclChannel>(std::move(communicator), ranks_.shared_context(),
                                           derived_key(ranks_.key(), pair), std::move(members));
  // NCCL opens the transport at the first message, for which both ends must be there too.
  cudaStream_t stream = channel_->stream().get();
  const auto probed = sends() ? ncclSend(probe_.data(), 1, ncclUint8, 1, handle, stream)
                              : ncclRecv(probe_.data(), 1, ncclUint8, 0, handle, stream);
  settle(probed, handle);
}

NcclChannel& NcclPair::channel(Stream stream) {
  if (connected_) return *channel_;
  if (is_capturing(stream))
    throw std::logic_error(fmt::format("{}: the first transfer starts inside a capture", name_.view()));
  CommContext& context = ranks_.context();
  const WaitScope wait(context.waits, ranks_.channel(), context.waits.enter(ranks_.channel(), name_), name_);
  const MpiSection section(context);
  check_mpi(MPI_Wait(&id_message_, MPI_STATUS_IGNORE), name_.view());
  if (sends())
    connecting_.get();
  else
    connect();
  connected_ = true;
  return *channel_;
}

}  // namespace convoy::comm
