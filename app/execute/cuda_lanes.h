// Records the instructions of a program in a captured CUDA graph. A lane is a sequence of
// instructions (lane_plan.h), and each lane has its own stream. For CUDA builds only.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "app/execute/lane_plan.h"
#include "app/execute/step_pieces.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::app {

// The events and extra streams that a graph capture uses. They must live until the capture has
// ended.
struct LaneResources {
  std::vector<kernels::CudaEvent> edges;
  // For each lane: its streams of high and of low priority.
  std::deque<kernels::CudaStream> urgent, background;
  const kernels::MultiprocessorPart* part = nullptr;  // where kernels of these streams run; null: anywhere
};

// Calls launch(instruction, lane, stream) for the instructions of a piece (step_pieces.h) in the
// plan's order, and makes the streams wait for each other as the plan says. Lane 0 has the stream
// `first`. The other lanes have streams of the pool. These streams fork from `first` and join it at
// the end. Urgent and background instructions of a lane run on further streams, because a kernel
// takes its priority from its stream.
void record_lanes(const LanePlan& plan, const StepPiece& piece, cudaStream_t first,
                  const kernels::StreamPool& streams, LaneResources& resources,
                  const std::function<void(int instruction, int lane, cudaStream_t stream)>& launch);

}  // namespace convoy::app
