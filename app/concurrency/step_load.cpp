#include "app/concurrency/step_load.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "app/execute/lane_plan.h"

namespace convoy::app {
namespace {

constexpr double kLeastMs = 2e-3;  // the least time of a launch

bool takes_no_time(const Instruction& instruction) {
  return instruction.communicates || instruction.follow != nullptr;
}

void add_wait(std::vector<int>& waits, int of) {
  if (!std::ranges::binary_search(waits, of)) waits.insert(std::ranges::upper_bound(waits, of), of);
}

// Returns the largest share of the device that one of the kernels takes. The kernels run one after
// the other, so their shares do not add up.
double share_of_blocks(const std::vector<KernelUse>& kernels, const DeviceLimits& device) {
  double share = kernels.empty() ? 1 : 0;
  for (const KernelUse& kernel : kernels) share = std::max(share, kernel.share(device));
  return share;
}

}  // namespace

double KernelUse::share(const DeviceLimits& device) const {
  return std::min(1.0,
                  static_cast<double>(blocks) / (static_cast<double>(device.multiprocessors) * resident));
}

double StepLoad::serial_ms() const {
  double sum = 0;
  for (const OpLoad& op : ops)
    if (op.engine == Engine::compute) sum += op.ms;
  return sum;
}

std::vector<double> estimated_op_ms(const Program& program, const DeviceThroughput& rates) {
  std::vector<double> ms;
  for (const Instruction& instruction : program.instructions())
    ms.push_back(std::max({kLeastMs, instruction.flops / rates.operations,
                           static_cast<double>(instruction.bytes) / rates.bytes}));
  return ms;
}

StepLoad make_step_load(const Program& program, const std::vector<double>& ms, const ResourceTable& resources,
                        const DeviceThroughput& rates) {
  StepLoad load;
  load.waits = dependences_of(program);
  using Likeness = std::tuple<std::string, double, std::int64_t, std::int64_t>;
  std::map<Likeness, int> numbers;
  int last_ordered = -1;
  for (std::size_t i = 0; i < program.instructions().size(); ++i) {
    const Instruction& instruction = program.instructions()[i];
    OpLoad& op = load.ops.emplace_back();
    op.engine = instruction.engine;
    op.only_in_place = instruction.reads_indices;
    const std::vector<KernelUse>& kernels = resources.kernels[i];
    std::int64_t blocks = 0;
    for (const KernelUse& kernel : kernels) blocks += kernel.blocks;
    const Likeness likeness{instruction.kind, instruction.flops, instruction.bytes, blocks};
    op.likeness = numbers.emplace(likeness, static_cast<int>(numbers.size())).first->second;
    if (takes_no_time(instruction)) {
      if (last_ordered >= 0) add_wait(load.waits[i], last_ordered);
      // An instruction that communicates may block its lane. So it must not start before the
      // instruction that precedes it in the program has ended.
      if (instruction.communicates && i > 0) add_wait(load.waits[i], static_cast<int>(i) - 1);
      last_ordered = static_cast<int>(i);
      continue;
    }
    op.ms = ms[i];
    if (op.engine != Engine::compute || op.ms <= 0) continue;
    op.blocks = instruction.fills ? 1 : share_of_blocks(kernels, resources.device);
    op.memory = std::min(1.0, static_cast<double>(instruction.bytes) / rates.bytes / op.ms);
    op.arithmetic = std::min(1.0, instruction.flops / rates.operations / op.ms);
  }
  return load;
}

}  // namespace convoy::app
