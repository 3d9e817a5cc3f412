// Copies between a device and host memory that run next to its work, and marks in that work, for
// which other work waits. On a host all work is done when a call returns.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/device/kernel.h"

namespace convoy::app {

class DeviceQueue {
 public:
  // A point in a stream. Null is a point that is reached.
  using Mark = std::shared_ptr<void>;
  enum class Direction : std::uint8_t { to_device, to_host };

  virtual ~DeviceQueue() = default;
  // Marks the end of all work that is on the stream now.
  virtual Mark mark(kernels::Stream stream) = 0;
  virtual bool reached(const Mark& mark) = 0;
  // Lets later work on the stream wait for the mark.
  virtual void order(kernels::Stream stream, const Mark& mark) = 0;
  // Blocks the calling thread until the mark is reached.
  virtual void wait(const Mark& mark) = 0;
  // Starts a copy after all these marks. Copies of one direction run one after the other. The host
  // memory must come from kernels::Arena::for_copies(). Returns the copy's end.
  virtual Mark copy(Direction direction, void* to, const void* from, std::size_t bytes,
                    std::span<const Mark> after) = 0;
  // Waits for all work of the device.
  virtual void synchronize() = 0;
};

std::unique_ptr<DeviceQueue> make_device_queue(kernels::Backend backend);
std::unique_ptr<DeviceQueue> make_cuda_queue();

}  // namespace convoy::app
