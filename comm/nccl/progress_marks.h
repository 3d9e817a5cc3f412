// Counters that CUDA streams advance at the start and the end of each collective (marks). They are
// in host memory, where the watchdog reads them. Nothing else shows how far a captured graph has
// come. The device counts, so the counters are exact for any number of launches. CUDA builds only.
// Internal to comm.
#pragma once

#include <cstdint>

#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

class ProgressMarks {
 public:
  // The numbers of operations that have begun and ended, the number that identifies the last one
  // that began, and the time when it began, in ns of the device's clock.
  struct Counts {
    std::uint64_t entered = 0, finished = 0;
    int operation = 0;
    std::uint64_t since = 0;
  };
  static constexpr int kMostOperations = 1 << 16;

  ProgressMarks();
  // Counts the start of an operation by a small kernel. The kernel runs after the end of the
  // previous operation was counted. `operation` is in [0, kMostOperations).
  void enter(cudaStream_t stream, int operation) const;
  // Counts the end of an operation. The stream itself writes the memory, which is cheaper than a
  // kernel.
  void finish(cudaStream_t stream) const;
  // Any thread may call this.
  Counts read() const;

 private:
  kernels::DeviceBuffer counter_;
  kernels::PinnedBuffer shown_;
};

}  // namespace convoy::comm
