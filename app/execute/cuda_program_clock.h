// When the instructions of a captured program begin and end, by the device's clock. The times are taken on branches
// beside the lanes, so that no lane waits for them. CUDA builds only.
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

  // In a capture: the interval begins or ends when the device has done what is on the lane's stream so far. Those of a
  // lane must come in its order.
  void begin(int interval, int lane, cudaStream_t stream) { take(2 * interval, 2 * lane, stream); }
  void end(int interval, int lane, cudaStream_t stream) { take(2 * interval + 1, 2 * lane + 1, stream); }
  // The interval ends with what `follow` puts a stream behind.
  void end_behind(int interval, const std::function<void(kernels::Stream)>& follow);
  // Before the capture ends: puts `stream` behind all branches, and so behind all that was timed. Also before what would leave
  // stamps no room.
  void join(cudaStream_t stream);

  // Device memory: an Interval (intervals.h) each.
  const kernels::DeviceStamps& stamps() const { return stamps_; }

 private:
  void take(int place, int branch, cudaStream_t stream);

  kernels::DeviceStamps stamps_;
  std::vector<kernels::CudaStream> branches_;  // of every lane two: begins and ends; one for what follows
  std::vector<bool> used_;                     // in this capture
  std::deque<kernels::CudaEvent> edges_;       // of the captures
};

}  // namespace convoy::app
