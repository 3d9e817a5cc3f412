// A window is device memory of all ranks of a host. Each rank has a part of it, and every rank can
// address all parts, because ranks exchange the CUDA IPC handles of their parts. The memory serves
// all-reduces (copy_all_reduce.h) and transfers by copy engines. CUDA builds only. Internal to
// comm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/shared_window.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

class PeerWindow {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr int kMostTransfers = 4000;  // largest number of transfers from one rank to another
  enum class Use : std::uint8_t { sums, transfers };
  // Returns the bytes of scratch memory that sums by copy engines need for a window of `bytes`
  // bytes, or 0 if the window is too small for such sums.
  static std::size_t scratch_bytes(std::size_t bytes);

  // Returns whether create() may succeed: there are at least two and at most kMostRanks ranks, all
  // on one host. The result is the same on all ranks.
  static bool possible(const Communicator& ranks);
  // Makes `bytes` of zeroed memory for each rank. Collective. Returns null on all ranks if one of
  // them
  //   - cannot address the memory of the others, on its own device or over NVLink,
  //   - has NCCL_P2P_DISABLE set to anything but 0,
  //   - passes 0, because it has already failed,
  //   - passes another size for Use::sums, or
  //   - cannot share memory of the host or the device with the others.
  // A rank without enough memory throws OutOfMemory; the others get null.
  static std::shared_ptr<PeerWindow> create(const Communicator& communicator, std::size_t bytes, Use use);
  // The destructor is collective, because no memory may be freed while another device may use it.
  // While an exception unwinds the stack, it waits only for its own device.
  ~PeerWindow();
  PeerWindow(const PeerWindow&) = delete;
  PeerWindow& operator=(const PeerWindow&) = delete;

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  std::byte* data(int rank) const { return parts_[rank]; }
  std::size_t bytes() const { return bytes_; }
  std::byte* scratch() const { return data(rank()) + scratch_offset(); }
  std::size_t scratch_bytes() const { return use_ == Use::sums ? scratch_bytes(bytes_) : 0; }
  Use use() const { return use_; }
  // Returns the offset of [data, data + bytes) in this rank's part of the window, or nothing if
  // this memory is not in the part.
  std::optional<std::size_t> offset_of(const void* data, std::size_t bytes) const;

  // A barrier makes later work on `stream` wait until the streams of all other ranks have reached
  // the same barrier. It needs no kernel. All ranks pass the barriers before_sum and after_sum
  // alternately.
  enum class Barrier : std::uint8_t { before_sum, after_sum };
  void enter_barrier(Barrier barrier, cudaStream_t stream) const;

  // Identifies a transfer by the other rank and a number below kMostTransfers. Each direction
  // between two ranks has its own numbers, and at most one transfer of a number is in progress. The
  // data move when both ends have started, and before any later work on the streams of both ends.
  struct TransferId {
    int peer = 0, number = 0;
  };
  struct RemoteSlot {
    // The place of the data in the receiver's part of the window, and their size.
    std::uint64_t offset = 0, bytes = 0;
  };
  void send(const TransferId& transfer, const void* data, const RemoteSlot& there, cudaStream_t stream) const;
  void receive(const TransferId& transfer, cudaStream_t stream) const;
  // Before the first transfer with a number, the receiver publishes the place of the data (with
  // bytes > 0), and the sender waits for this. The watchdog observes the wait.
  void publish_slot(const TransferId& transfer, const RemoteSlot& here) const;
  RemoteSlot wait_for_slot(const TransferId& transfer) const;
  // Returns the number of the next transfer to, or from, a peer. Numbers are never reused. Throws
  // std::length_error after kMostTransfers.
  int next_transfer(bool sends, int peer);
  // Makes this rank's device pass all barriers and transfers without waiting, until it is idle.
  // Call it only at the end of a job, because this rank, and the ranks that wait for it, go on with
  // wrong data.
  void release_device() const noexcept;

 private:
  // These flags are in host memory. So the host can release a device whose streams all wait for
  // flags (see release_device). MPI messages would not do, because the thread that would call MPI
  // may itself be blocked by a full stream.
  struct BarrierFlags;
  struct TransferState;

  PeerWindow(const Communicator& communicator, std::size_t bytes, Use use);
  int channel_of_slots(int sender, int receiver) const;
  BarrierFlags& barrier_flags(int of) const;
  TransferState& state(int sender, int receiver, int number) const;
  static std::size_t whole_lines(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  std::size_t scratch_offset() const { return whole_lines(bytes_); }
  void reserve();
  bool open_parts();
  bool open_states();
  void set_all_flags() const noexcept;

  Communicator ranks_;
  std::size_t bytes_;
  const Use use_;
  const int unwinding_;  // std::uncaught_exceptions() at construction
  int device_ = 0;
  // Whether a wait for a flag can also make visible what other devices wrote before the flag was
  // set (CU_STREAM_WAIT_VALUE_FLUSH).
  bool flushes_ = false;
  kernels::DeviceBuffer own_;
  std::vector<std::byte*> parts_;  // addresses of all ranks' parts in this process
  std::shared_ptr<SharedWindow> states_;
  // The parts of states_ (the flags of each rank) that are registered with the device.
  std::vector<std::byte*> registered_;
  // How many transfers next_transfer() has numbered. Element 2 * peer counts the transfers from a
  // peer, and element 2 * peer + 1 those to it.
  std::array<int, 2 * kMostRanks> transfers_{};
};

}  // namespace convoy::comm
