// Records when the instructions of a captured program begin and end, by the device's clock. The
// stamps are taken on streams of their own that branch off the lanes, so no lane waits for them.
// CUDA builds only.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "kernels/device/cuda_runtime.h"
#include "kernels/device/cuda_stamps.h"

namespace convoy::app {

class ProgramClock {
 public:
  ProgramClock(int lanes, int intervals);

  // Call these in a capture. The interval begins or ends when the device has done all work recorded
  // on the lane's stream so far. The calls of one lane must come in the order of its instructions.
  void begin(int interval, int lane, cudaStream_t stream) { take(2 * interval, 2 * lane, stream); }
  void end(int interval, int lane, cudaStream_t stream) { take(2 * interval + 1, 2 * lane + 1, stream); }
  // Ends the interval when the work that `follow` makes a stream wait for is done.
  void end_after(int interval, const std::function<void(kernels::Stream)>& follow);
  // Makes `stream` wait for all stamps taken so far. Call it before the capture ends, and before a
  // kernel that fills the device, as the stamps would otherwise wait for its blocks.
  void join(cudaStream_t stream);

  // Device memory that holds one Interval (intervals.h) for each timed interval.
  const kernels::DeviceStamps& stamps() const { return stamps_; }

 private:
  void take(int stamp, int branch, cudaStream_t stream);

  kernels::DeviceStamps stamps_;
  std::vector<kernels::CudaStream>
      branches_;                          // two a lane, for begins and for ends; the last for end_after()
  std::vector<bool> used_;                // by branch: whether it has stamps since the last join()
  std::deque<kernels::CudaEvent> edges_;  // used by the captured graphs
};

}  // namespace convoy::app
