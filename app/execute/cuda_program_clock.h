// Records when the instructions of a captured program begin and end, in the device's time. Time
// stamps are taken on separate streams that branch off the lanes, so no lane waits for them. For
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

  // Record the begin or the end of an interval: the time when the device has done all work recorded
  // on the lane's stream so far. Call these while the stream is being captured. The calls for one
  // lane must come in the order of its instructions.
  void begin(int interval, int lane, cudaStream_t stream) { take(2 * interval, 2 * lane, stream); }
  void end(int interval, int lane, cudaStream_t stream) { take(2 * interval + 1, 2 * lane + 1, stream); }
  // Ends the interval when a communication is done, without making a lane wait for it. `follow`
  // (Instruction::follow) makes a stream wait for that communication.
  void end_after(int interval, const std::function<void(kernels::Stream)>& follow);
  // Makes `stream` wait for all time stamps taken so far. Call it before the capture ends. Call it
  // also before a kernel that fills the device, since the stamps would otherwise wait for thread
  // blocks of that kernel.
  void join(cudaStream_t stream);

  // Returns the device memory that holds one Interval (intervals.h) per timed interval.
  const kernels::DeviceStamps& stamps() const { return stamps_; }

 private:
  void take(int stamp, int branch, cudaStream_t stream);

  kernels::DeviceStamps stamps_;
  // The streams of the time stamps: two per lane, for begins and for ends, and one for end_after().
  std::vector<kernels::CudaStream> branches_;
  // For each of branches_: whether it has taken time stamps since the last join().
  std::vector<bool> used_;
  // The events by which lanes and branches_ wait for each other in a graph capture. They must live
  // until the capture has ended.
  std::deque<kernels::CudaEvent> edges_;
};

}  // namespace convoy::app
