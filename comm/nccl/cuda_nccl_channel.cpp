#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>

#include "comm/nccl/nccl_channel.h"

namespace convoy::comm {

void set_nccl_defaults() {
  // Turn off sums in NVLink switches, because NCCL does not control the order in which the switches
  // add.
  if (std::getenv("NCCL_ALGO") == nullptr) ::setenv("NCCL_NVLS_ENABLE", "0", 0);
}

NcclComm connect_all(const Communicator& ranks, std::string_view purpose, int blocks) {
  const OperationName name("NCCL connection", purpose);
  ncclUniqueId id{};
  if (ranks.rank() == 0) check_nccl(ncclGetUniqueId(&id), name.view());
  ranks.broadcast(std::span<char>(id.internal), 0, "NCCL id");
  // While NCCL connects, it waits for all members. Register this wait with the watchdog.
  CommContext& context = ranks.context();
  const WaitScope wait(context.waits, ranks.channel(), context.waits.enter(ranks.channel(), name), name);
  ncclComm_t communicator = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (blocks > 0) config.maxCTAs = blocks;
  check_nccl(ncclCommInitRankConfig(&communicator, ranks.size(), id, ranks.rank(), &config), name.view());
  return NcclComm(communicator);
}

NcclChannel::NcclChannel(NcclComm communicator, std::shared_ptr<CommContext> context, std::uint64_t key,
                         std::vector<int> members)
    : context_(std::move(context)), communicator_(std::move(communicator)) {
  context_->waits.attach(context_->waits.open_channel(key, std::move(members)), *this);
}

NcclChannel::~NcclChannel() {
  // Wait for the operations here, while the watchdog still observes them. If the last operation
  // waits for a rank that has died, only the watchdog can end the wait.
  if (std::uncaught_exceptions() == 0) cudaStreamSynchronize(mark_stream_.get());
  context_->waits.detach(*this);
  if (std::uncaught_exceptions() > 0) communicator_.abort();
}

void NcclChannel::abort() noexcept {
  context_->waits.detach(*this);
  communicator_.abort();
  aborted_ = true;
}

void NcclChannel::fork(Stream stream) const {
  if (aborted_) throw std::logic_error("an operation on a channel that was aborted");
  forked_.record(stream.get());
  forked_.make_wait(stream_.get());
  // ready_ marks the end of the previous operation on stream_. The counters on mark_stream_ must
  // not be advanced for this operation before then.
  ready_.record(stream_.get());
  ready_.make_wait(mark_stream_.get());
}

int NcclChannel::number_of(const OperationName& name) {
  const std::lock_guard lock(names_mutex_);
  const auto known = std::find_if(names_.begin(), names_.end(),
                                  [&](const OperationName& other) { return other.view() == name.view(); });
  if (known != names_.end()) return static_cast<int>(known - names_.begin());
  if (std::ssize(names_) >= ProgressMarks::kMostOperations)
    throw std::length_error(
        fmt::format("more than {} names of NCCL operations", ProgressMarks::kMostOperations));
  names_.push_back(name);
  return static_cast<int>(names_.size()) - 1;
}

OperationName NcclChannel::name(int operation) const {
  const std::lock_guard lock(names_mutex_);
  return operation < std::ssize(names_) ? names_[operation] : OperationName();
}

DeviceOperations::Progress NcclChannel::progress() const {
  const ProgressMarks::Counts counts = marks_.read();
  return {counts.entered, counts.finished, counts.entered > 0 ? name(counts.operation) : OperationName(),
          counts.since};
}

std::string NcclChannel::failure() const {
  if (communicator_.get() == nullptr) return {};
  ncclResult_t status = ncclSuccess;
  const ncclResult_t queried = ncclCommGetAsyncError(communicator_.get(), &status);
  if (queried == ncclSuccess && status == ncclSuccess) return {};
  const auto operation = progress().current;
  return fmt::format("{}: {}", operation.view().empty() ? "NCCL connection" : operation.view(),
                     nccl_reason(queried == ncclSuccess ? status : queried, communicator_.get()));
}

}  // namespace convoy::comm
