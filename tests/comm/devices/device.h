// The memories in which collectives are tested: host memory and, in CUDA builds, that of this
// rank's GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/collectives.h"
#include "comm/communicator.h"

namespace convoy::test {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Returns why these ranks cannot use this device, or an empty string if they can. All ranks get
  // the same answer.
  virtual std::string missing(const comm::Communicator& ranks) = 0;
  virtual std::unique_ptr<comm::Collectives> collectives(const comm::Communicator& ranks) = 0;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  // Copies after all work that was enqueued so far.
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  virtual comm::Stream stream() = 0;
  // Returns a function that runs the work as a training step does. On a GPU it replays a captured
  // graph.
  virtual std::function<void()> as_step(const std::function<void(comm::Stream)>& work) = 0;
};

// Returns all devices, the host first.
const std::vector<Device*>& devices();

template <typename T>
class OnDevice {
 public:
  OnDevice(Device& device, std::vector<T> values)
      : device_(device), host_(std::move(values)), memory_(device.allocate(host_.size() * sizeof(T) + 1)) {
    set(host_);
  }
  void set(const std::vector<T>& values) {
    device_.copy_in(memory_.get(), values.data(), values.size() * sizeof(T));
  }
  std::vector<T> get() const {
    std::vector<T> values(host_.size());
    device_.copy_out(values.data(), memory_.get(), values.size() * sizeof(T));
    return values;
  }
  T* data() const { return static_cast<T*>(memory_.get()); }
  std::int64_t size() const { return std::ssize(host_); }

 private:
  Device& device_;
  std::vector<T> host_;
  std::shared_ptr<void> memory_;
};

}  // namespace convoy::test
