#include <utility>

#include "app/timing/launch_timer.h"
#include "kernels/device/cuda_runtime.h"

namespace convoy::app {
namespace {

using kernels::CapturedGraph;
using kernels::CudaEvent;

// Times launches in a captured graph, so that they run as fast as in a step. Each time stamp takes
// one or two microseconds and keeps neighbouring launches from overlapping, so a round with stamps
// takes longer than one without.
class CudaTimer final : public LaunchTimer {
 public:
  explicit CudaTimer(std::vector<kernels::Launch> launches) : launches_(std::move(launches)) {
    for (std::size_t i = 0; i <= launches_.size(); ++i) stamps_.emplace_back(CudaEvent::Timing::on);
  }

  std::vector<LaunchTime> round() override {
    if (divided_.nodes() == 0) divided_ = capture(true);
    run(divided_);
    std::vector<LaunchTime> times(launches_.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double ms = launches_[i] ? CudaEvent::microseconds(stamps_[i], stamps_[i + 1]) / 1000 : 0;
      times[i] = {ms, ms};
    }
    return times;
  }

  double undivided_round() override {
    if (undivided_.nodes() == 0) undivided_ = capture(false);
    run(undivided_);
    return CudaEvent::microseconds(stamps_.front(), stamps_.back()) / 1000;
  }

 private:
  CapturedGraph capture(bool divided) const {
    return CapturedGraph::capture([&](kernels::Stream stream) {
      const auto own = stream.get();
      stamps_.front().record_in_graph(own);
      for (std::size_t i = 0; i < launches_.size(); ++i) {
        if (launches_[i]) launches_[i](stream);
        if (divided || i + 1 == launches_.size()) stamps_[i + 1].record_in_graph(own);
      }
    });
  }
  static void run(const CapturedGraph& graph) {
    graph.launch({});
    CONVOY_CUDA(cudaStreamSynchronize(nullptr));
  }

  std::vector<kernels::Launch> launches_;
  // One stamp before the first launch and one after each launch.
  std::vector<CudaEvent> stamps_;
  CapturedGraph divided_, undivided_;
};

}  // namespace

std::unique_ptr<LaunchTimer> make_cuda_launch_timer(std::vector<kernels::Launch> launches) {
  return std::make_unique<CudaTimer>(std::move(launches));
}

}  // namespace convoy::app
