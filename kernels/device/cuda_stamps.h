// Records time stamps with the device's own clock and without the host, also in captured graphs.
// Each stamp is a small kernel on a branch of the graph for which only the graph's end waits, so it
// runs in parallel with the measured work. CUDA builds only.
#pragma once

#include "kernels/device/cuda_runtime.h"

namespace convoy::kernels {

class DeviceStamps {
 public:
  explicit DeviceStamps(int count);
  // Writes the device's clock, in nanoseconds, to element `index` of data(), by a kernel of one
  // thread.
  void take(Stream stream, int index) const;
  void* data() const { return times_.data(); }  // device memory with std::uint64_t elements
  std::size_t bytes() const { return times_.bytes(); }

 private:
  int count_;
  DeviceBuffer times_;
};

}  // namespace convoy::kernels
