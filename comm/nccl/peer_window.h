// Device memory of which every rank of a host can address every other's part, for all-reduces (copy_all_reduce.h) and transfers by
// the copy engines: the ranks exchange CUDA's handles for memory between processes. CUDA builds only. Internal to comm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/shared_window.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

class PeerWindow {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr int kMostTransfers = 4000;  // from one rank to another
  enum class Use : std::uint8_t { sums, transfers };
  // Beside every part of so many bytes, room for what its rank fetches from the others: a whole bucket's, or none where
  // there can be no bucket that is summed so.
  static std::size_t scratch_bytes(std::size_t bytes);

  // As far as can be known beforehand: several ranks, on one host. The same on all of them.
  static bool possible(const Communicator& ranks);
  // Collective; `bytes` of zeroed memory a rank. Null on every rank where one of them cannot address the others' memory over
  // NVLink, asks for nothing, as one that has failed does, or has NCCL_P2P_DISABLE=1; for sums also where sizes differ. Throws
  // std::runtime_error where the memory is not there, and gives the others null.
  static std::shared_ptr<PeerWindow> create(const Communicator& communicator, std::size_t bytes, Use use);
  // Collective, unless an exception unwinds the stack: nobody's memory goes while another's device may use it.
  ~PeerWindow();
  PeerWindow(const PeerWindow&) = delete;
  PeerWindow& operator=(const PeerWindow&) = delete;

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  std::byte* data(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  std::size_t bytes() const { return bytes_; }
  std::byte* scratch() const { return data(rank()) + scratch_offset(); }
  std::size_t scratch_bytes() const { return use_ == Use::sums ? scratch_bytes(bytes_) : 0; }
  Use use() const { return use_; }
  // Where `bytes` from `data` on lie in this rank's part; nothing where they do not.
  std::optional<std::size_t> offset_of(const void* data, std::size_t bytes) const;

  // What follows on `stream` comes behind what precedes the same call on all other ranks. Done by the stream itself, without
  // a kernel. The calls of a window, in whatever graphs, run one after the other, on all ranks in the same order, and
  // of the two places in turn.
  enum class Meeting : std::uint8_t { before_sum, behind_sum };
  void meet(Meeting meeting, cudaStream_t stream) const;

  // Both ends of one transfer, of which each pair of ranks has kMostTransfers, numbered by the caller, one of a number under way at a
  // time. The data move when both ends have got there; what follows on the streams comes behind that.
  struct Transfer {
    int peer = 0, number = 0;
  };
  struct Place {
    std::uint64_t offset = 0, bytes = 0;  // in a rank's part
  };
  void send(const Transfer& transfer, const void* data, const Place& there, cudaStream_t stream) const;
  void receive(const Transfer& transfer, cudaStream_t stream) const;
  // Before the first of a transfer the receiver tells the sender where it goes; not nowhere. The watchdog sees who waits for whom.
  void tell(const Transfer& transfer, const Place& here) const;
  Place await(const Transfer& transfer) const;
  // The number of the next transfer to, or from, a peer, of all that will ever use the window. Throws std::length_error beyond
  // kMostTransfers.
  int next_transfer(bool sends, int peer);
  // Lets this rank's device pass all meetings and transfers, until it has nothing left to do. For the end of a job: it and ranks that
  // wait for it then go on with wrong sums and tensors.
  void stop_meeting() const noexcept;

 private:
  // What ranks and their devices tell each other lies in memory of the host: a device that waits for it in all of its queues can
  // still be let go, and an MPI message may need a call by the sender's thread, which may be blocked by a full stream.
  struct Meetings;
  struct TransferState;

  PeerWindow(const Communicator& communicator, std::size_t bytes, Use use);
  int channel_of_places(int sender, int receiver) const;
  Meetings& meetings(int of) const;
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
  const int unwinding_;  // exceptions at the begin
  int device_ = 0;
  bool flushes_ = false;  // whether a wait can flush what other devices have written
  kernels::DeviceBuffer own_;
  std::vector<std::byte*> parts_;  // as this process addresses them
  std::shared_ptr<SharedWindow> states_;
  std::vector<std::byte*> registered_;           // parts of states_, for the device
  std::array<int, 2 * kMostRanks> transfers_{};  // numbered so far
};

}  // namespace convoy::comm
