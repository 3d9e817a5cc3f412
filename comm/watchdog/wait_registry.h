// The state of this rank as its watchdog sees it: how many operations it has entered on every
// channel, and in which operations it is blocked. A channel is a communicator or an ordered pair of
// ranks.
//
// All ranks enter the operations of a channel in the same order, so channel and sequence number
// name the same operation on every rank. A rank that has entered fewer operations has not reached
// it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::comm {

using Clock = std::chrono::steady_clock;

// A text of bounded length, stored without allocation.
class OperationName {
 public:
  OperationName() = default;
  explicit OperationName(std::string_view operation, std::string_view label = {});
  std::string_view view() const { return {text_.data(), length_}; }

 private:
  std::array<char, 94> text_{};
  std::uint16_t length_ = 0;
};

// A wait that has lasted longer than the timeout.
struct OverdueWait {
  std::uint64_t channel_key = 0;
  std::uint64_t sequence = 0;
  std::string operation;  // for example "all_reduce gradients bucket 3"
  std::int64_t step = -1;
  std::vector<int> members;  // the world ranks that take part
};

// A rank's answer to the hub's question how far it is on a channel.
struct RankState {
  std::uint64_t entered = 0;  // how many operations of that channel the rank has entered
  std::int64_t step = -1;
  std::string waiting_in;  // operation in which the rank is blocked; empty if none
  double waiting_seconds = 0;
  std::string last_operation;  // last operation that the rank entered on any channel; empty if none
};

// Tells how far a device has come with the operations of a channel. The device runs the operations
// without a thread of this rank that waits in them. The watchdog's thread calls these functions.
class DeviceOperations {
 public:
  struct Progress {
    std::uint64_t entered = 0;  // operations that the device has reached
    std::uint64_t finished = 0;
    OperationName current;  // the last operation that the device entered
    // The time when the device entered `current`, in ns of a clock that all devices of this process
    // share.
    std::uint64_t since = 0;
  };
  virtual ~DeviceOperations() = default;
  virtual Progress progress() const = 0;
  // Returns the library's message if a collective has failed, else an empty text.
  virtual std::string failure() const = 0;
};

class WaitRegistry {
 public:
  WaitRegistry();

  // Returns the index of the channel with this key, and opens it at the first call. Allocates, so
  // call it before the first step.
  int open_channel(std::uint64_t key, std::vector<int> members);
  // Counts an operation and returns its sequence number (1, 2, …). This and the following functions
  // allocate nothing.
  std::uint64_t enter(int channel, const OperationName& name);
  // Begins a blocking wait for an operation. Pass the returned token to end_wait.
  int begin_wait(int channel, std::uint64_t sequence, const OperationName& name);
  void end_wait(int token);
  void set_step(std::int64_t step);
  // Call this for a channel whose operations a device runs. From then on, `operations` tells how
  // far the device has come. `operations` must live until detach().
  void attach(int channel, const DeviceOperations& operations);
  void detach(const DeviceOperations& operations);

  // Reads how far the devices have come since the last call. Returns the error message of the first
  // device whose collectives failed, and only once. Call it on the watchdog's thread.
  std::optional<std::string> look_at_devices(Clock::time_point now);
  // Returns the longest wait above the limit. Time in which the whole process was stopped does not
  // count.
  std::optional<OverdueWait> overdue(Clock::time_point now, Clock::duration limit) const;
  RankState state(std::uint64_t channel_key, Clock::time_point now) const;
  void forgive(Clock::duration stopped);

 private:
  struct Channel {
    std::uint64_t key = 0;
    std::vector<int> members;
    std::uint64_t entered = 0;
  };
  struct Wait {
    bool active = false;
    int channel = 0;
    std::uint64_t sequence = 0;
    OperationName name;
    Clock::time_point since;
  };
  struct Device {
    const DeviceOperations* operations = nullptr;
    Wait wait;  // the device's wait for the current operation
  };
  const Wait* longest() const;

  // The largest number of waits at one time. A thread waits in only one operation at a time, and
  // fewer threads than this call MPI.
  static constexpr int kMaxWaits = 16;
  mutable std::mutex mutex_;
  std::deque<Channel> channels_;
  std::array<Wait, kMaxWaits> waits_;
  std::vector<Device> devices_;
  bool failure_told_ = false;
  OperationName last_;
  std::int64_t step_ = -1;
};

// Registers a blocking wait with the watchdog while this object lives.
class WaitScope {
 public:
  WaitScope(WaitRegistry& registry, int channel, std::uint64_t sequence, const OperationName& name)
      : registry_(registry), token_(registry.begin_wait(channel, sequence, name)) {}
  ~WaitScope() { registry_.end_wait(token_); }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  WaitRegistry& registry_;
  int token_;
};

}  // namespace convoy::comm
