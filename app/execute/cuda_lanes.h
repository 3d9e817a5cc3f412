// Records a program in a capture, on the streams of its lanes. CUDA builds only.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "app/execute/lane_plan.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::app {

// Objects that captures need until they have ended.
struct LaneResources {
  std::vector<kernels::CudaEvent> edges;
  std::deque<kernels::CudaStream> urgent;  // by lane: of high priority, for urgent instructions
};

// Calls launch(instruction, lane, stream) for all instructions in the plan's order, on streams that
// wait for each other as the plan says. Lane 0 is `first`, the others are streams of the pool,
// which fork from it and join it at the end. Kernels take their priority from the stream, so that
// urgent instructions of a lane have a stream of their own.
void record_lanes(const LanePlan& plan, cudaStream_t first, const kernels::StreamPool& streams,
                  LaneResources& resources,
                  const std::function<void(int instruction, int lane, cudaStream_t stream)>& launch);

}  // namespace convoy::app
