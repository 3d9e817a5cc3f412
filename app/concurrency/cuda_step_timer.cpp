#include <algorithm>
#include <deque>
#include <functional>
#include <limits>

#include "app/concurrency/step_timer.h"
#include "app/execute/cuda_lanes.h"
#include "app/execute/session_tools.h"
#include "app/median.h"
#include "app/timing/launch_timer.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::app {
namespace {

using kernels::CapturedGraph;
using kernels::CudaEvent;
using Clock = std::chrono::steady_clock;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class CudaStepTimer final : public StepTimer {
 public:
  CudaStepTimer(Session& session, const Program& program)
      : program_(program), streams_(SessionTools(session).programs().lanes + kCopyLanes) {
    const ModelMemory& memory = session.memory();
    for (const Instruction& instruction : program.instructions()) {
      const bool makes_images =
          memory.has_transforms() && std::ranges::any_of(instruction.reads, [&](const MemoryRange& range) {
            for (int member = 0; member < memory.members(); ++member)
              if (range.begin == memory.of_member(memory.transforms(), member)) return true;
            return false;
          });
      const bool left_out = instruction.communicates || instruction.follow || makes_images;
      launches_.push_back(left_out ? kernels::Launch() : instruction.launch);
    }
  }

  std::vector<double> op_ms() override {
    constexpr int kRounds = 3;
    // Subtracting the cost of a time stamp leaves at least this fraction of a measured time.
    constexpr double kLeastShare = 0.3;
    const std::unique_ptr<LaunchTimer> timer = make_cuda_launch_timer(launches_);
    timer->round();
    std::vector<std::vector<double>> rounds(launches_.size());
    std::vector<double> wholes;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<LaunchTime> times = timer->round();
      for (std::size_t i = 0; i < times.size(); ++i) rounds[i].push_back(times[i].passed);
      wholes.push_back(timer->undivided_round());
    }
    std::vector<double> ms;
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      ms.push_back(median(rounds[i]));
      sum += ms.back(), count += launches_[i] ? 1 : 0;
    }
    // The time stamps make the sum of all times larger than a round without stamps. Subtract an
    // equal part of the difference from each time.
    const double stamp = std::max(0.0, sum - median(wholes)) / std::max(count, 1.0);
    for (double& one : ms) one = std::max(one - stamp, kLeastShare * one);
    return ms;
  }

  double event_ms(int shortest) override {
    constexpr int kChain = 16, kRounds = 5;
    constexpr double kMost = 0.01;
    const kernels::Launch& launch = launches_[at(shortest)];
    if (!launch) return 0;
    const Segment in_one = [&](cudaStream_t first, cudaStream_t) {
      for (int i = 0; i < kChain; ++i) launch(kernels::Stream(first));
    };
    const Segment in_turns = [&](cudaStream_t first, cudaStream_t second) {
      for (int i = 0; i < kChain; i += 2) {
        launch(kernels::Stream(first));
        order(first, second);
        launch(kernels::Stream(second));
        order(second, first);
      }
    };
    const std::vector<double> ms = time_segments({in_one, in_turns}, kRounds);
    return std::clamp((ms[1] - ms[0]) / kChain, 0.0, kMost);
  }

  std::vector<PairTime> pairs(std::span<const std::pair<int, int>> pairs) override {
    constexpr int kRounds = 3;
    std::vector<Segment> segments;
    for (const auto& pair : pairs) {
      const kernels::Launch &a = launches_[at(pair.first)], &b = launches_[at(pair.second)];
      segments.push_back([&a, &b](cudaStream_t first, cudaStream_t) {
        a(kernels::Stream(first));
        b(kernels::Stream(first));
      });
      segments.push_back([this, &a, &b](cudaStream_t first, cudaStream_t second) {
        order(first, second);
        a(kernels::Stream(first));
        b(kernels::Stream(second));
        order(second, first);
      });
    }
    std::vector<PairTime> times;
    if (segments.empty()) return times;
    const std::vector<double> ms = time_segments(segments, kRounds);
    for (std::size_t i = 0; i < ms.size(); i += 2) times.push_back({ms[i], ms[i + 1]});
    return times;
  }

  std::vector<double> schedules(std::span<const LaneOrder> schedules, Deadline deadline) override {
    constexpr std::size_t kAlways = 2;
    constexpr int kFewestRounds = 3, kMostRounds = 15;
    std::vector<CapturedGraph> graphs;
    for (const LaneOrder& lanes : schedules) {
      if (graphs.size() >= kAlways && Clock::now() > deadline) break;
      graphs.push_back(capture(lanes));
    }
    for (const CapturedGraph& graph : graphs) time(graph, 1);
    const double once = graphs.empty() ? 1 : time(graphs[0], 1);
    const int repeats = std::clamp(static_cast<int>(kRoundMs / once), 1, 20);
    std::vector<std::vector<double>> rounds(graphs.size());
    for (int round = 0; round < kMostRounds && (round < kFewestRounds || Clock::now() < deadline); ++round)
      for (std::size_t i = 0; i < graphs.size(); ++i) rounds[i].push_back(time(graphs[i], repeats));
    std::vector<double> ms(schedules.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < graphs.size(); ++i) ms[i] = median(rounds[i]);
    return ms;
  }

 private:
  static constexpr double kRoundMs = 2;
  using Segment = std::function<void(cudaStream_t first, cudaStream_t second)>;

  cudaStream_t stream(int lane) const { return streams_.compute(lane).get(); }

  // Makes later work on `second` wait for the work so far on `first`, inside a capture.
  void order(cudaStream_t first, cudaStream_t second) {
    const CudaEvent& edge = edges_.emplace_back();
    edge.record(first);
    edge.make_wait(second);
  }

  CapturedGraph capture(const LaneOrder& lanes) {
    Program arranged = program_;
    arranged.arrange(lanes);
    const LanePlan plan = plan_lanes(arranged, 1);
    lane_resources_.edges.clear();
    return CapturedGraph::capture([&](kernels::Stream first) {
      record_lanes(plan, {0, plan.order.size()}, first.get(), streams_, lane_resources_,
                   [&](int instruction, int, cudaStream_t lane) {
                     if (launches_[at(instruction)]) launches_[at(instruction)](kernels::Stream(lane));
                   });
    });
  }

  double time(const CapturedGraph& graph, int repeats) const {
    begin_.record(stream(0));
    for (int i = 0; i < repeats; ++i) graph.launch(stream(0));
    end_.record(stream(0));
    end_.synchronize();
    return CudaEvent::microseconds(begin_, end_) / 1000 / repeats;
  }

  // Runs the segments, which are functions that launch kernels, one after the other in one graph.
  // Returns the median milliseconds of each segment.
  std::vector<double> time_segments(const std::vector<Segment>& segments, int rounds) {
    std::vector<CudaEvent> stamps;
    for (std::size_t i = 0; i <= segments.size(); ++i) stamps.emplace_back(CudaEvent::Timing::on);
    const CapturedGraph graph = CapturedGraph::capture([&](kernels::Stream first) {
      stamps[0].record_in_graph(first.get());
      for (std::size_t i = 0; i < segments.size(); ++i) {
        segments[i](first.get(), stream(1));
        stamps[i + 1].record_in_graph(first.get());
      }
    });
    std::vector<std::vector<double>> times(segments.size());
    for (int round = 0; round <= rounds; ++round) {
      graph.launch(stream(0));
      streams_.compute(0).synchronize();
      for (std::size_t i = 0; i < segments.size() && round > 0; ++i)
        times[i].push_back(CudaEvent::microseconds(stamps[i], stamps[i + 1]) / 1000);
    }
    edges_.clear();
    std::vector<double> medians;
    std::ranges::transform(times, std::back_inserter(medians), median);
    return medians;
  }

  const Program& program_;
  std::vector<kernels::Launch> launches_;  // one per instruction; empty if the timer leaves it out
  kernels::StreamPool streams_;
  LaneResources lane_resources_;
  std::deque<CudaEvent> edges_;
  const CudaEvent begin_{CudaEvent::Timing::on}, end_{CudaEvent::Timing::on};
};

}  // namespace

std::unique_ptr<StepTimer> make_step_timer(Session& session, const Program& program) {
  return std::make_unique<CudaStepTimer>(session, program);
}

}  // namespace convoy::app
