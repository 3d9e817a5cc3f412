// The gate through which a session uses a device that other sessions of the process use, too. The
// gate gives the session its memory, and makes its thread wait until the session may use the
// device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/execute/memory_range.h"
#include "kernels/device/stream.h"

namespace convoy::kernels {
class MultiprocessorPart;
}

namespace convoy::app {

// Three parts of a session's memory, by how long their content must stay.
enum class MemoryPart : std::uint8_t {
  // Images, labels and control values, which the host writes before a step begins. The memory
  // belongs to the session alone.
  inputs,
  // Parameters, optimizer state and statistics. They may be moved to host memory while other
  // sessions use the device.
  state,
  // Activations and gradients. They are needed during a step only, so sessions that take turns may
  // share it.
  scratch,
  count
};
inline constexpr int kMemoryParts = static_cast<int>(MemoryPart::count);

// MemoryNeed holds the bytes of each part, and MemoryPlace the first byte of each part. Both are
// indexed by MemoryPart.
struct MemoryNeed {
  std::int64_t bytes[kMemoryParts] = {};
};
struct MemoryPlace {
  std::byte* start[kMemoryParts] = {};
};

class DeviceGate {
 public:
  enum class Use : std::uint8_t {
    step,    // launches a piece of a step
    memory,  // reads or writes the state from the host
    alone    // times kernels; nobody else may use the device meanwhile
  };
  // A piece of a step that is launched as one unit.
  struct Piece {
    double milliseconds = 0;  // the estimated duration
    bool last = true;         // whether this is the last piece of the step
    // The ranges of the state that this piece uses and that no earlier piece of the step uses, in
    // the order of use. Until leave() they must not be moved to host memory. If this is null, the
    // piece may use the whole state.
    const std::vector<MemoryRange>* first_used = nullptr;
    // Whether a part of the batch ends with this piece. A step computes its batch in one or several
    // parts.
    bool ends_part = true;
  };

  virtual ~DeviceGate() = default;

  // Reserves the session's memory and returns where it is. May wait until all sessions that start
  // at the same time have called reserve(), so do not call it between enter() and leave(). A
  // session that is made again gets the same memory and must not need more. Throws
  // kernels::OutOfMemory.
  virtual MemoryPlace reserve(const MemoryNeed& need) = 0;

  // Waits until the session may use the device. Work that is enqueued on `stream` afterwards runs
  // after the work of other sessions in the same memory. It also runs after the session's state has
  // come back to device memory, or at least the ranges that this piece and earlier pieces of the
  // step use. With Use::memory and Use::alone, enter() returns only when that has happened. A
  // nested call does nothing.
  virtual void enter(Use use, const Piece& piece, kernels::Stream stream) = 0;
  virtual void leave(Use use, const Piece& piece, kernels::Stream stream) noexcept = 0;
  // Tells the gate whether the session will start a step soon. If the session is a prediction
  // service, trainings that share the device then start no step before that step.
  virtual void expect_step(bool soon) noexcept = 0;
  // Tells the gate that the oldest step in flight is finished, and whether it trained or only
  // evaluated.
  virtual void finished(bool training) noexcept = 0;

  // Returns how long a piece of a step may take; 0 if steps need not be divided.
  virtual double longest_piece_ms() const = 0;
  // Returns whether free multiprocessors go to this session first.
  virtual bool urgent() const = 0;
  // Returns the multiprocessors on which the session's kernels run; null if all. They outlive the
  // session.
  virtual const kernels::MultiprocessorPart* multiprocessors() const { return nullptr; }
};

// Enters a gate and leaves it in the destructor. Does nothing if there is no gate.
class Admission {
 public:
  Admission(DeviceGate* gate, DeviceGate::Use use, DeviceGate::Piece piece = {}, kernels::Stream stream = {})
      : gate_(gate), use_(use), piece_(piece), stream_(stream) {
    if (gate_ != nullptr) gate_->enter(use_, piece_, stream_);
  }
  ~Admission() {
    if (gate_ != nullptr) gate_->leave(use_, piece_, stream_);
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

 private:
  DeviceGate* gate_;
  DeviceGate::Use use_;
  DeviceGate::Piece piece_;
  kernels::Stream stream_;
};

}  // namespace convoy::app
