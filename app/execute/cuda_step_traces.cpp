#include "app/execute/cuda_step_traces.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "app/execute/lane_plan.h"

namespace convoy::app {
namespace {

std::int64_t host_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the nanoseconds to add to a time of the device to get the host's time. Each attempt takes
// a time stamp on the device between two reads of the host's clock. The shorter the time between
// the two reads, the smaller the error, so the attempt with the shortest time counts.
std::int64_t offset_to_host(const kernels::CudaStream& stream) {
  const kernels::DeviceStamps stamp(1);
  std::int64_t closest = std::numeric_limits<std::int64_t>::max(), offset = 0;
  for (int attempt = 0; attempt < 50; ++attempt) {
    const std::int64_t before = host_ns();
    stamp.take(stream.view(), 0);
    stream.synchronize();
    const std::int64_t after = host_ns();
    std::uint64_t device = 0;
    CONVOY_CUDA(cudaMemcpyAsync(&device, stamp.data(), sizeof device, cudaMemcpyDeviceToHost, stream.get()));
    stream.synchronize();
    if (after - before >= closest) continue;
    closest = after - before;
    offset = before + closest / 2 - static_cast<std::int64_t>(device);
  }
  return offset;
}

}  // namespace

StepTraces::StepTraces(const Program& program, int lanes, int steps) : program_(program) {
  for (int step = 0; step < steps; ++step)
    clocks_.emplace_back(lanes + kCopyLanes, static_cast<int>(program.instructions().size()));
}

std::vector<TracedStep> StepTraces::read(const kernels::CudaStream& idle, int lanes) const {
  const std::int64_t offset = offset_to_host(idle);
  const LanePlan plan = plan_lanes(program_, lanes);
  std::vector<TracedStep> steps;
  for (const ProgramClock& clock : clocks_) {
    std::vector<Interval> times(program_.instructions().size());
    CONVOY_CUDA(cudaMemcpyAsync(times.data(), clock.stamps().data(), clock.stamps().bytes(),
                                cudaMemcpyDeviceToHost, idle.get()));
    idle.synchronize();
    TracedStep& step = steps.emplace_back();
    for (std::size_t i = 0; i < times.size(); ++i)
      step.push_back({{times[i].begin + static_cast<std::uint64_t>(offset),
                       times[i].end + static_cast<std::uint64_t>(offset)},
                      plan.steps[i].lane});
  }
  return steps;
}

}  // namespace convoy::app
