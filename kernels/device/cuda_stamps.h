// Time stamps by the device's own clock, which a captured graph takes without the host. Stamps run
// next to the work: each has a branch of its own that nothing waits for before the graph's end.
// CUDA builds only.
#pragma once

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class DeviceStamps {
 public:
  explicit DeviceStamps(int count);
  // Writes nanoseconds of the device's clock to place `index`, by a kernel of one thread.
  void take(Stream stream, int index) const;
  void* data() const { return times_.data(); }  // device memory, std::uint64_t each
  std::size_t bytes() const { return times_.bytes(); }

 private:
  int count_;
  DeviceBuffer times_;
};

}  // namespace convoy::kernels
