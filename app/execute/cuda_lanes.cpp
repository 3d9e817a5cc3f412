#include "app/execute/cuda_lanes.h"

#include <algorithm>
#include <map>
#include <span>

namespace convoy::app {

void record_lanes(const LanePlan& plan, const StepPiece& piece, cudaStream_t first,
                  const kernels::StreamPool& streams, LaneResources& resources,
                  const std::function<void(int instruction, int lane, cudaStream_t stream)>& launch) {
  const auto edge = [&](cudaStream_t from, cudaStream_t to) {
    const kernels::CudaEvent& made = resources.edges.emplace_back();
    made.record(from);
    made.make_wait(to);
  };
  using Priority = kernels::CudaStream::Priority;
  const auto make = [&](bool LanePlan::Step::*kind, std::deque<kernels::CudaStream>& made,
                        Priority priority) {
    if (std::ranges::none_of(plan.steps, kind)) return;
    while (std::ssize(made) < plan.lanes) made.emplace_back(priority, resources.part);
  };
  make(&LanePlan::Step::urgent, resources.urgent, Priority::high);
  make(&LanePlan::Step::background, resources.background, Priority::low);
  const auto plain = [&](int lane) { return lane == 0 ? first : streams.compute(lane).get(); };
  std::vector<cudaStream_t> now;  // indexed by lane: the stream of its latest instruction
  std::map<int, kernels::CudaEvent> events;
  for (int lane = 0; lane < plan.lanes; ++lane) {
    if (lane > 0) edge(first, plain(lane));
    now.push_back(plain(lane));
  }
  for (const int instruction : std::span(plan.order).subspan(piece.first, piece.end - piece.first)) {
    const LanePlan::Step& step = plan.steps[static_cast<std::size_t>(instruction)];
    const auto lane = static_cast<std::size_t>(step.lane);
    cudaStream_t& stream = now[lane];
    const cudaStream_t wanted = step.background ? resources.background[lane].get()
                                : step.urgent   ? resources.urgent[lane].get()
                                                : plain(step.lane);
    if (wanted != stream) edge(stream, wanted);
    stream = wanted;
    // An event of an earlier piece of the step needs no wait, because a piece begins when the piece
    // before it has ended.
    for (const int event : step.waits)
      if (const auto recorded = events.find(event); recorded != events.end())
        recorded->second.make_wait(stream);
    launch(instruction, step.lane, stream);
    if (step.records >= 0) events[step.records].record(stream);
  }
  for (const cudaStream_t stream : now)
    if (stream != first) edge(stream, first);
  for (auto& [number, event] : events) resources.edges.push_back(std::move(event));
}

}  // namespace convoy::app
