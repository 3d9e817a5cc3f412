// Starts copies between a device and host memory, which run at the same time as other work of the
// device. Sets marks in the device's work, and other work can wait for a mark. On a CPU there are
// no streams, and each call returns when its work is done.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/device/kernel.h"

namespace convoy::app {

class DeviceQueue {
 public:
  // A point in a stream, which is reached when the device has done all earlier work of the stream.
  // A null mark counts as reached.
  using Mark = std::shared_ptr<void>;
  enum class Direction : std::uint8_t { to_device, to_host };

  virtual ~DeviceQueue() = default;
  // Sets a mark after all work that has been put on the stream so far.
  virtual Mark mark(kernels::Stream stream) = 0;
  virtual bool reached(const Mark& mark) = 0;
  // Makes later work on the stream wait for the mark.
  virtual void order(kernels::Stream stream, const Mark& mark) = 0;
  // Blocks the calling thread until the mark is reached.
  virtual void wait(const Mark& mark) = 0;
  // Starts a copy, which waits for all marks in `after`. Copies of one direction run one after the
  // other. The host memory must come from kernels::Arena::for_copies(). Returns a mark at the end
  // of the copy.
  virtual Mark copy(Direction direction, void* to, const void* from, std::size_t bytes,
                    std::span<const Mark> after) = 0;
  // Waits for all work of the device.
  virtual void synchronize() = 0;
};

std::unique_ptr<DeviceQueue> make_device_queue(kernels::Backend backend);
std::unique_ptr<DeviceQueue> make_cuda_queue();

}  // namespace convoy::app
