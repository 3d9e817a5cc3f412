#include "app/concurrency/glp4nn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/concurrency/schedule.h"

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Resources of a multiprocessor: either those that one instance of a kernel takes, or those that
// are still free.
struct MultiprocessorUse {
  std::int64_t warps = 0, threads = 0, shared_bytes = 0, registers = 0, blocks = 0;
};

MultiprocessorUse multiprocessor_use(const KernelUse& use, const DeviceLimits& device) {
  const std::int64_t blocks =
      std::clamp<std::int64_t>(ceil_div(use.blocks, device.multiprocessors), 1, std::max(use.resident, 1));
  const std::int64_t shared = use.static_shared + use.dynamic_shared;
  return {ceil_div(use.threads, 32) * blocks, use.threads * blocks,
          (shared == 0 ? 0 : shared + device.shared_bytes_of_system) * blocks,
          std::int64_t{use.registers} * use.threads * blocks, blocks};
}

// Finds by branch and bound how many instances of each kernel should run at the same time. Decides
// one kernel after the other and tries the largest number first.
class InstanceSearch {
 public:
  InstanceSearch(std::vector<MultiprocessorUse> uses, std::vector<std::int64_t> most, Glp4nnLimits limits)
      : uses_(std::move(uses)), most_(std::move(most)), limits_(limits) {}

  std::vector<int> run(const MultiprocessorUse& device) {
    chosen_.assign(uses_.size(), 0), best_ = chosen_;
    most_warps_ = device.warps;
    search(0, device, 0);
    return best_;
  }

 private:
  void search(std::size_t kernel, const MultiprocessorUse& left, std::int64_t warps) {
    if (warps > best_warps_) best_warps_ = warps, best_ = chosen_;
    if (kernel == uses_.size() || best_warps_ == most_warps_ || warps + left.warps <= best_warps_) return;
    const MultiprocessorUse& one = uses_[kernel];
    for (std::int64_t count = fitting(one, left, most_[kernel]); count >= 0; --count) {
      chosen_[kernel] = static_cast<int>(count);
      search(kernel + 1,
             {left.warps - count * one.warps, left.threads - count * one.threads,
              left.shared_bytes - count * one.shared_bytes, left.registers - count * one.registers,
              left.blocks - count * one.blocks},
             warps + count * one.warps);
    }
    chosen_[kernel] = 0;
  }

  std::int64_t fitting(const MultiprocessorUse& one, const MultiprocessorUse& left, std::int64_t most) const {
    std::int64_t count = std::min(most, left.threads / one.threads);
    if (one.shared_bytes > 0) count = std::min(count, left.shared_bytes / one.shared_bytes);
    if (limits_ == Glp4nnLimits::original) return count;
    if (one.registers > 0) count = std::min(count, left.registers / one.registers);
    return std::min(count, left.blocks / one.blocks);
  }

  const std::vector<MultiprocessorUse> uses_;
  const std::vector<std::int64_t> most_;
  const Glp4nnLimits limits_;
  std::vector<int> chosen_, best_;
  std::int64_t best_warps_ = 0, most_warps_ = 0;
};

// Schedules the instructions of one layer over `lanes` lanes, in the program's order.
void place_layer(const StepLoad& load, int first, int end, int lanes, LaneOrder& result) {
  std::vector<int> tails(at(lanes), -1);
  for (int i = first; i < end; ++i) {
    int best = -1;
    for (int lane = 0; lane < lanes; ++lane)
      if (tails[at(lane)] >= 0 && std::ranges::binary_search(load.waits[at(i)], tails[at(lane)])) best = lane;
    if (best < 0) best = static_cast<int>(std::ranges::min_element(tails) - tails.begin());
    result.lane[at(i)] = best;
    if (load.ops[at(i)].engine == Engine::compute) tails[at(best)] = i;
  }
}

}  // namespace

std::vector<int> glp4nn_instances(std::span<const LayerKernel> kernels, const DeviceLimits& device,
                                  double launch_ms, Glp4nnLimits limits) {
  std::vector<MultiprocessorUse> uses;
  std::vector<std::int64_t> most;
  for (const LayerKernel& kernel : kernels) {
    uses.push_back(multiprocessor_use(kernel.use, device));
    most.push_back(std::min<std::int64_t>(std::llround(std::ceil(kernel.ms / launch_ms)), device.kernels));
  }
  return InstanceSearch(std::move(uses), std::move(most), limits)
      .run({device.threads / 32, device.threads, device.shared_bytes, device.registers, device.blocks});
}

int glp4nn_streams(std::span<const LayerKernel> kernels, const DeviceLimits& device, double launch_ms,
                   Glp4nnLimits limits) {
  const std::vector<int> instances = glp4nn_instances(kernels, device, launch_ms, limits);
  return std::clamp(std::accumulate(instances.begin(), instances.end(), 0), 1, device.kernels);
}

LaneOrder glp4nn_lanes(const Program& program, const StepLoad& load, const ResourceTable& resources,
                       double launch_ms, int most_lanes) {
  LaneOrder result = one_lane(load);
  const auto& instructions = program.instructions();
  const int count = static_cast<int>(std::ssize(instructions));
  int before = 0;  // the first instruction of the previous layer
  for (int first = 0, end = 0; first < count; before = first, first = end) {
    std::vector<LayerKernel> kernels;
    for (end = first; end < count && instructions[at(end)].layer == instructions[at(first)].layer; ++end)
      for (const KernelUse& use : resources.kernels[at(end)])
        kernels.push_back(
            {use, load.ops[at(end)].ms / static_cast<double>(resources.kernels[at(end)].size())});
    const int lanes =
        std::min(glp4nn_streams(kernels, resources.device, launch_ms, Glp4nnLimits::all), most_lanes);
    place_layer(load, first, end, lanes, result);
    for (int i = first; i < end; ++i)
      for (int of = before; of < first; ++of) result.holds.emplace_back(of, i);
  }
  return result;
}

}  // namespace convoy::app
