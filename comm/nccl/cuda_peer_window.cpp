#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "comm/nccl/nccl_collectives.h"
#include "comm/nccl/peer_window.h"
#include "kernels/device/cuda_driver.h"

namespace convoy::comm {
namespace {

// A rank sends its Offer to the others so that they can open its part of the window. `bytes` is 0
// if the rank has no memory.
struct Offer {
  cudaIpcMemHandle_t handle{};
  std::uint64_t bytes = 0;
  std::array<char, 32> pci{};
};

const OperationName kSlotOfATransfer("address of a transfer");

constexpr std::uint32_t kSet = 1;

// Returns whether a call succeeded, for calls that fail on some machines. After a failure it clears
// CUDA's error state.
bool succeeded(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

bool allowed() {
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  return disabled == nullptr || std::string_view(disabled) == "0";
}

// Returns whether copy engines can be used between the devices: NVLink connects them, or both ranks
// use one device, as in tests. Without NVLink there are no atomic operations between GPUs, and NCCL
// is faster.
bool linked(int device, const Offer& other) {
  int peer = 0, atomics = 0;
  if (!succeeded(cudaDeviceGetByPCIBusId(&peer, other.pci.data()))) return false;
  if (peer == device) return true;
  return succeeded(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device, peer)) &&
         atomics == 1;
}

CUstreamBatchMemOpParams write_of(std::uint32_t* flag, std::uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = reinterpret_cast<CUdeviceptr>(flag);
  operation.writeValue.value = value;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return operation;
}

// Returns an operation by which a stream waits for a flag. With `flush`, later work also sees the
// data that other ranks wrote before they set the flag.
CUstreamBatchMemOpParams wait_for(std::uint32_t* flag, bool flush) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  operation.waitValue.value = kSet;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ | (flush ? CU_STREAM_WAIT_VALUE_FLUSH : 0);
  return operation;
}

void perform(std::span<const CUstreamBatchMemOpParams> operations, cudaStream_t stream) {
  static auto* const run = kernels::driver_function<decltype(&cuStreamBatchMemOp)>("cuStreamBatchMemOp");
  // The driver only reads, although its parameter is not const.
  auto* const first = const_cast<CUstreamBatchMemOpParams*>(operations.data());
  kernels::check_driver(run(stream, static_cast<unsigned>(operations.size()), first, 0),
                        "cuStreamBatchMemOp");
}

}  // namespace

// The flags that one rank owns: met[b][r] belongs to barrier b and to another rank r. Rank r sets
// the flag when it reaches the barrier, and the owner clears the flag.
struct PeerWindow::BarrierFlags {
  std::uint32_t met[2][kMostRanks];
};

// The state of one transfer, in host memory. One end sets a flag, and the other end waits for the
// flag and clears it. `bytes` is 0 until the receiver has said where in its memory the data go
// (`offset`).
struct PeerWindow::TransferState {
  std::uint32_t may_send, has_sent;
  std::uint64_t offset;
  std::atomic<std::uint64_t> bytes;
};

bool PeerWindow::possible(const Communicator& ranks) {
  return ranks.size() > 1 && ranks.size() <= kMostRanks && ranks.local_size() == ranks.size();
}

std::size_t PeerWindow::scratch_bytes(std::size_t bytes) {
  constexpr std::size_t kLeast = kLeastCopiedBytes, kMost = kNcclBucketSizes.bytes;
  return bytes < kLeast ? 0 : std::min(kMost, whole_lines(bytes));
}

std::shared_ptr<PeerWindow> PeerWindow::create(const Communicator& communicator, std::size_t bytes, Use use) {
  std::shared_ptr<PeerWindow> window(new PeerWindow(communicator, bytes, use));
  std::exception_ptr failure;
  try {
    if (bytes > 0 && allowed()) window->reserve();
  } catch (...) {
    failure = std::current_exception();
  }
  const bool addressed = window->open_parts();
  const std::int32_t complete = window->open_states() && addressed;
  // If any rank has failed, all ranks destroy the window here, because its destructor is
  // collective.
  if (communicator.all_reduce(complete, ReduceOp::min, "peer window") == 0) window.reset();
  if (failure) std::rethrow_exception(failure);
  return window;
}

PeerWindow::PeerWindow(const Communicator& communicator, std::size_t bytes, Use use)
    : ranks_(communicator.duplicate(communicator.name() + " peer window")),
      bytes_(bytes),
      use_(use),
      unwinding_(std::uncaught_exceptions()),
      parts_(static_cast<std::size_t>(communicator.size())) {
  CONVOY_CUDA(cudaGetDevice(&device_));
  int flushes = 0;
  CONVOY_CUDA(cudaDeviceGetAttribute(&flushes, cudaDevAttrCanFlushRemoteWrites, device_));
  flushes_ = flushes != 0;
}

void PeerWindow::reserve() {
  own_ = kernels::DeviceBuffer(scratch_offset() + scratch_bytes());
  CONVOY_CUDA(cudaMemset(own_.data(), 0, own_.bytes()));
  CONVOY_CUDA(cudaDeviceSynchronize());
}

// Gets this rank's memory address and opens the memory of all others. Returns whether that
// succeeded. Collective.
bool PeerWindow::open_parts() {
  Offer mine;
  if (own_.data() != nullptr &&
      succeeded(cudaDeviceGetPCIBusId(mine.pci.data(), static_cast<int>(mine.pci.size()), device_)) &&
      succeeded(cudaIpcGetMemHandle(&mine.handle, own_.data())))
    mine.bytes = bytes_;
  std::vector<Offer> all(parts_.size());
  ranks_.all_gather(std::as_bytes(std::span<const Offer>(&mine, 1)), std::as_writable_bytes(std::span(all)),
                    "peer window");
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (mine.bytes == 0 || all[r].bytes == 0) return false;
    if (use_ == Use::sums && all[r].bytes != mine.bytes) return false;
    void* part = own_.data();
    if (static_cast<int>(r) != rank() &&
        !(linked(device_, all[r]) &&
          succeeded(cudaIpcOpenMemHandle(&part, all[r].handle, cudaIpcMemLazyEnablePeerAccess))))
      return false;
    parts_[r] = static_cast<std::byte*>(part);
  }
  return true;
}

// Makes the host memory of the flags of all ranks and registers it with the device. Returns whether
// that succeeded. Collective.
bool PeerWindow::open_states() {
  const std::size_t bytes = use_ == Use::sums
                                ? sizeof(BarrierFlags)
                                : static_cast<std::size_t>(size()) * kMostTransfers * sizeof(TransferState);
  states_ = SharedWindow::create(ranks_, own_.data() != nullptr ? bytes : 0);
  if (states_ == nullptr) return false;
  int same_address = 0;
  if (!succeeded(
          cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, device_)))
    return false;
  for (int r = 0; r < size() && same_address != 0; ++r) {
    if (!succeeded(cudaHostRegister(states_->data(r), bytes, cudaHostRegisterDefault))) return false;
    registered_.push_back(states_->data(r));
  }
  return same_address != 0;
}

PeerWindow::~PeerWindow() {
  const auto barrier_of_ranks = [this] {
    if (std::uncaught_exceptions() > unwinding_) return;  // the other ranks may never come
    try {
      ranks_.barrier("peer window");
      // Ignore an error of the barrier: the rank that failed reports it.
    } catch (const std::exception&) {
    }
  };
  cudaDeviceSynchronize();
  barrier_of_ranks();
  for (std::byte* part : parts_)
    if (part != nullptr && part != own_.data()) cudaIpcCloseMemHandle(part);
  for (std::byte* part : registered_) cudaHostUnregister(part);
  barrier_of_ranks();
}

int PeerWindow::next_transfer(bool sends, int peer) {
  int& next = transfers_[2 * peer + (sends ? 1 : 0)];
  if (next == kMostTransfers)
    throw std::length_error(fmt::format(
        "more than {} tensors from one GPU to another, of training and evaluation steps", kMostTransfers));
  return next++;
}

// Returns the watchdog's channel (wait_registry.h) for the waits of this pair in wait_for_slot().
// In such a wait the sender waits until the receiver has said where the data go.
int PeerWindow::channel_of_slots(int sender, int receiver) const {
  const std::vector<int>& world = ranks_.world_ranks();
  return ranks_.context().waits.open_channel(
      derived_key(ranks_.key(), static_cast<std::uint64_t>(sender * size() + receiver)),
      {world[sender], world[receiver]});
}

PeerWindow::BarrierFlags& PeerWindow::barrier_flags(int of) const {
  return *reinterpret_cast<BarrierFlags*>(states_->data(of));
}
PeerWindow::TransferState& PeerWindow::state(int sender, int receiver, int number) const {
  return reinterpret_cast<TransferState*>(states_->data(receiver))[sender * kMostTransfers + number];
}

void PeerWindow::publish_slot(const TransferId& transfer, const RemoteSlot& here) const {
  ranks_.context().waits.enter(channel_of_slots(transfer.peer, rank()), kSlotOfATransfer);
  TransferState& place = state(transfer.peer, rank(), transfer.number);
  place.offset = here.offset;
  place.bytes.store(here.bytes, std::memory_order_release);
}

PeerWindow::RemoteSlot PeerWindow::wait_for_slot(const TransferId& transfer) const {
  CommContext& context = ranks_.context();
  const int channel = channel_of_slots(rank(), transfer.peer);
  context.waits.enter(channel, kSlotOfATransfer);
  const TransferState& place = state(rank(), transfer.peer, transfer.number);
  std::uint64_t bytes = place.bytes.load(std::memory_order_acquire);
  if (bytes == 0) {
    // The watchdog numbers the waits of a channel from 1. The receiver says where the data of
    // transfer 0, 1, 2, … go in this order. So the wait for transfer n is number n + 1.
    const WaitScope wait(context.waits, channel, static_cast<std::uint64_t>(transfer.number) + 1,
                         kSlotOfATransfer);
    while ((bytes = place.bytes.load(std::memory_order_acquire)) == 0) ::sched_yield();
  }
  return {place.offset, bytes};
}

std::optional<std::size_t> PeerWindow::offset_of(const void* data, std::size_t bytes) const {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(data) - this->data(rank());
  if (offset < 0 || static_cast<std::size_t>(offset) + bytes > bytes_) return std::nullopt;
  return static_cast<std::size_t>(offset);
}

// In a transfer the receiver sets may_send. Then the sender copies the data and sets has_sent. The
// end that waits for a flag also clears it, so the flag is clear before the other end can set it
// for the next transfer.
void PeerWindow::send(const TransferId& transfer, const void* data, const RemoteSlot& there,
                      cudaStream_t stream) const {
  TransferState& between = state(rank(), transfer.peer, transfer.number);
  perform(std::array{wait_for(&between.may_send, flushes_), write_of(&between.may_send, 0)}, stream);
  CONVOY_CUDA(cudaMemcpyAsync(this->data(transfer.peer) + there.offset, data, there.bytes,
                              cudaMemcpyDeviceToDevice, stream));
  perform(std::array{write_of(&between.has_sent, kSet)}, stream);
}

void PeerWindow::receive(const TransferId& transfer, cudaStream_t stream) const {
  TransferState& between = state(transfer.peer, rank(), transfer.number);
  perform(std::array{write_of(&between.may_send, kSet), wait_for(&between.has_sent, flushes_),
                     write_of(&between.has_sent, 0)},
          stream);
}

void PeerWindow::enter_barrier(Barrier barrier, cudaStream_t stream) const {
  std::array<CUstreamBatchMemOpParams, std::size_t{3} * kMostRanks> operations;
  std::size_t count = 0;
  const auto for_others = [&](auto&& operation) {
    for (int step = 1; step < size(); ++step) operations[count++] = operation((rank() + step) % size());
  };
  const auto flag = [&](int of, int by) { return &barrier_flags(of).met[static_cast<int>(barrier)][by]; };
  for_others([&](int other) { return write_of(flag(other, rank()), kSet); });
  for_others([&](int other) { return wait_for(flag(rank(), other), flushes_); });
  // Clear this rank's flags now. No other rank sets them again before this rank has reached the
  // other barrier.
  for_others([&](int other) { return write_of(flag(rank(), other), 0); });
  perform(std::span(operations).first(count), stream);
}

// Sets every flag that this rank's device may wait for.
void PeerWindow::set_all_flags() const noexcept {
  const auto set = [](std::uint32_t& flag) { std::atomic_ref(flag).store(kSet, std::memory_order_relaxed); };
  for (int other = 0; other < size(); ++other)
    if (use_ == Use::sums) {
      for (auto& met : barrier_flags(rank()).met) set(met[other]);
    } else {
      for (int number = 0; number < kMostTransfers; ++number) {
        set(state(rank(), other, number).may_send);
        set(state(other, rank(), number).has_sent);
      }
    }
}

void PeerWindow::release_device() const noexcept {
  std::atomic<bool> idle = false;
  std::thread waiting([&] {
    cudaSetDevice(device_);
    cudaDeviceSynchronize();
    idle = true;
  });
  while (!idle) {
    // Set the flags again and again until the device is idle, because the device clears a flag
    // after it has waited for it.
    set_all_flags();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  waiting.join();
}

}  // namespace convoy::comm
