// Counters that a stream advances before and behind each of its collectives, in host memory, where the watchdog
// reads them: the only way to see how far a captured graph has come. Exact under any number of launches, because
// the device counts. CUDA builds only. Internal to comm.
#pragma once

#include <cstdint>

#include "kernels/device/cuda_runtime.h"

namespace convoy::comm {

class ProgressMarks {
 public:
  // The number of operations whose begin and end the stream has passed, and the last begun.
  struct Counts {
    std::uint64_t entered = 0, finished = 0;
    int operation = 0;
  };
  static constexpr int kMostOperations = 1 << 16;

  ProgressMarks();
  // Enqueued on the one stream that these marks belong to. `operation` in [0, kMostOperations).
  void enter(cudaStream_t stream, int operation) const;
  void finish(cudaStream_t stream) const;
  // Any thread.
  Counts read() const;

 private:
  kernels::DeviceBuffer counter_;
  kernels::PinnedBuffer shown_;
};

}  // namespace convoy::comm
