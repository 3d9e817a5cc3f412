// When a device came to places in its work, by its own clock: a captured graph takes the times without the host. What
// takes them runs beside the work: each place has a branch of its own that nothing waits for before the graph's end.
// CUDA builds only.
#pragma once

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class DeviceStamps {
 public:
  explicit DeviceStamps(int count);
  // A kernel of one thread: writes nanoseconds, of an epoch of the device's, to place `index`.
  void take(Stream stream, int index) const;
  void* data() const { return times_.data(); }  // device memory, std::uint64_t each
  std::size_t bytes() const { return times_.bytes(); }

 private:
  int count_;
  DeviceBuffer times_;
};

}  // namespace convoy::kernels
