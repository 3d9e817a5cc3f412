// Counters that streams advance at the begin and the end of each collective, in host memory, where the watchdog
// reads them: the only way to see how far a captured graph has come. Exact under any number of launches, because
// the device counts. CUDA builds only. Internal to comm.
#pragma once

#include <cstdint>

#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

class ProgressMarks {
 public:
  // The number of operations whose begin and end the streams have passed, and the last begun, with the device's time in ns.
  struct Counts {
    std::uint64_t entered = 0, finished = 0;
    int operation = 0;
    std::uint64_t since = 0;
  };
  static constexpr int kMostOperations = 1 << 16;

  ProgressMarks();
  // One kernel that counts; behind the finish of the operation before. `operation` in [0, kMostOperations).
  void enter(cudaStream_t stream, int operation) const;
  // One write by the stream itself, cheaper than a kernel.
  void finish(cudaStream_t stream) const;
  // Any thread.
  Counts read() const;

 private:
  kernels::DeviceBuffer counter_;
  kernels::PinnedBuffer shown_;
};

}  // namespace convoy::comm
