#include "kernels/gemm/bench/cuda_bench.h"

namespace convoy::kernels::gemm {

constexpr double kSlow = 100e3;        // in microseconds; a slower launch is timed only once
constexpr double kCacheBytes = 256e6;  // several times the largest L2 cache

int operand_sets(double bytes) { return int(std::clamp(std::ceil(kCacheBytes / bytes), 1.0, 16.0)); }

void reserve(DeviceBuffer& workspace, std::size_t bytes) {
  if (workspace.bytes() >= bytes) return;
  workspace = DeviceBuffer();
  workspace = DeviceBuffer(bytes);
}

Bounds bounds_of(Math math, DType output, std::int64_t k) {
  const double unit = std::ldexp(1.0, -24);
  const bool tf32 = math == Math::tf32, rounded = output == DType::bf16;
  return {unit * (8 + 2 * std::sqrt(double(k))) + (tf32 ? std::ldexp(1.0, -9) : 0),
          rounded ? std::ldexp(1.0, -8) : 2 * unit,
          rounded ? 4e-3
          : tf32  ? 2e-3
                  : 3e-4};
}

std::vector<Timing> time_in_turns(const std::vector<std::vector<Launch>>& contenders, double budget,
                                  int samples) {
  const CudaEvent begin(CudaEvent::Timing::on), end(CudaEvent::Timing::on);
  const auto timed = [&](const auto& run) {
    begin.record(kBenchStream);
    run();
    end.record(kBenchStream);
    end.synchronize();
    return CudaEvent::microseconds(begin, end);
  };
  struct Replay {
    CapturedGraph graph;
    double launches = 0;
    std::vector<double> times;
  };
  std::vector<Replay> replays;
  for (const std::vector<Launch>& launches : contenders) {
    launches.front()(Stream(kBenchStream));  // loads the module before anything is timed
    const double once = timed([&] { launches.back()(Stream(kBenchStream)); });
    if (once > kSlow) {
      replays.push_back({{}, 1, {once}});
      continue;
    }
    const int rounds = int(std::clamp(budget / (once * double(launches.size())), 1.0, 64.0));
    replays.push_back({CapturedGraph::capture([&](Stream captured) {
                         for (int round = 0; round < rounds; ++round)
                           for (const Launch& launch : launches) launch(captured);
                       }),
                       double(rounds) * double(launches.size()),
                       {}});
    replays.back().graph.launch(kBenchStream);
  }
  for (int sample = 0; sample < samples; ++sample)
    for (Replay& one : replays)
      if (one.graph.nodes() > 0)
        one.times.push_back(timed([&] { one.graph.launch(kBenchStream); }) / one.launches);
  std::vector<Timing> timings;
  for (Replay& one : replays) {
    std::sort(one.times.begin(), one.times.end());
    timings.push_back({one.times[one.times.size() / 2], one.times.front(), one.times.back()});
  }
  return timings;
}

}  // namespace convoy::kernels::gemm
