// Takes time stamps by the device's own clock, without the host, also in a captured graph. A stamp
// runs in parallel with the work, on a branch of its own that only the graph's end waits for. CUDA
// builds only.
#pragma once

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class DeviceStamps {
 public:
  explicit DeviceStamps(int count);
  // Writes the device's clock, in nanoseconds, to place `index`, by a kernel of one thread.
  void take(Stream stream, int index) const;
  void* data() const { return times_.data(); }  // device memory with std::uint64_t elements
  std::size_t bytes() const { return times_.bytes(); }

 private:
  int count_;
  DeviceBuffer times_;
};

}  // namespace convoy::kernels
