#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "comm/mpi_check.h"
#include "comm/nccl/nccl_pairs.h"

namespace convoy::comm {
namespace {

// Returns how many GPU blocks NCCL may use for a pair of ranks. A receive occupies multiprocessors
// while it waits. The peers' messages may depend on work of this device, so all pairs together must
// leave half of the multiprocessors free. Otherwise there could be a deadlock.
int blocks_of_pair(int ranks) {
  constexpr unsigned kOfAllPairs = 64, kOfPair = 16;
  // NCCL rounds the number of blocks up to a power of two, so round it down first.
  return static_cast<int>(
      std::bit_floor(std::clamp(kOfAllPairs / (2U * static_cast<unsigned>(ranks - 1)), 1U, kOfPair)));
}

OperationName name_of_connection(int sender, int receiver) {
  return OperationName("NCCL connection", fmt::format("from rank {} to rank {}", sender, receiver));
}

}  // namespace

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CONVOY_CUDA(cudaStreamIsCapturing(stream.get(), &status));
  return status != cudaStreamCaptureStatusNone;
}

NcclChannel& NcclPairs::connected(int sender, int receiver, Stream stream) {
  const std::unique_ptr<NcclChannel>& wanted = channels_.at({sender, receiver});
  // Connect all pairs before any transfer. During a transfer this device may wait for a peer, and
  // the peer may have to connect its pairs first, which may need this device.
  if (!is_capturing(stream))
    for (auto& [ends, channel] : channels_)
      if (channel == nullptr) channel = connect(ends.first, ends.second);
  if (wanted == nullptr)
    throw std::logic_error(fmt::format("{}: the first transfer starts inside a capture",
                                       name_of_connection(sender, receiver).view()));
  return *wanted;
}

std::vector<NcclChannel*> NcclPairs::all_connected() const {
  std::vector<NcclChannel*> connected;
  for (const auto& [ends, channel] : channels_)
    if (channel != nullptr) connected.push_back(channel.get());
  return connected;
}

std::unique_ptr<NcclChannel> NcclPairs::connect(int sender, int receiver) {
  const OperationName name = name_of_connection(sender, receiver);
  const bool sends = ranks_.rank() == sender;
  const auto pair = static_cast<std::uint64_t>(sender * ranks_.size() + receiver);
  const std::vector<int>& world = ranks_.world_ranks();
  const std::vector<int> members{world[sender], world[receiver]};
  CommContext& context = ranks_.context();
  const int of_waits =
      context.waits.open_channel(derived_key(ranks_.key(), (std::uint64_t{3} << 32) + pair), members);
  const WaitScope wait(context.waits, of_waits, context.waits.enter(of_waits, name), name);

  ncclUniqueId id{};
  {
    constexpr int kIdTag = 1;
    const MpiSection section(context);
    if (sends) {
      check_nccl(ncclGetUniqueId(&id), name.view());
      // MPI_Ssend returns only after the receiver has taken the message. With MPI_Send the message
      // might still wait here while the next call, of NCCL, blocks this thread.
      check_mpi(MPI_Ssend(id.internal, NCCL_UNIQUE_ID_BYTES, MPI_CHAR, receiver, kIdTag, ranks_.handle()),
                name.view());
    } else {
      check_mpi(MPI_Recv(id.internal, NCCL_UNIQUE_ID_BYTES, MPI_CHAR, sender, kIdTag, ranks_.handle(),
                         MPI_STATUS_IGNORE),
                name.view());
    }
  }
  if (probe_.bytes() == 0) probe_ = kernels::DeviceBuffer(1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = blocks_of_pair(ranks_.size());
  ncclComm_t handle = nullptr;
  check_nccl(ncclCommInitRankConfig(&handle, 2, id, sends ? 0 : 1, &config), name.view());
  auto channel = std::make_unique<NcclChannel>(NcclComm(handle), ranks_.shared_context(),
                                               derived_key(ranks_.key(), pair), members);
  // Send one byte now. NCCL opens its transport with the first message, in which both ends must
  // take part.
  const cudaStream_t stream = channel->stream().get();
  check_nccl(sends ? ncclSend(probe_.data(), 1, ncclUint8, 1, handle, stream)
                   : ncclRecv(probe_.data(), 1, ncclUint8, 0, handle, stream),
             name.view(), handle);
  channel->stream().synchronize();
  return channel;
}

}  // namespace convoy::comm
