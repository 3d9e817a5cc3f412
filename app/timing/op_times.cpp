#include "app/timing/op_times.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/execute/fill_with_numbers.h"
#include "app/median.h"
#include "kernels/device/arena.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::DType;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr std::int64_t kAlignment = 256;  // operands start at multiples of this many bytes
std::int64_t padded(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void scale_to(std::vector<LaunchTime>& times, double ms) {
  double sum = 0;
  for (const LaunchTime& time : times) sum += time.passed;
  for (LaunchTime& time : times) time.passed *= ms / sum, time.worked *= ms / sum;
}

// Returns each node's median over the rounds, scaled so that the medians add up to the median time
// of a round. In every round some operation is delayed, but medians leave delays out. So without
// scaling their sum would be too small.
std::vector<double> typical(const std::vector<OpSamples>& of_nodes, std::vector<double> OpSamples::*kind) {
  std::vector<double> medians, rounds;
  for (const OpSamples& samples : of_nodes) {
    const std::vector<double>& values = samples.*kind;
    medians.push_back(values.empty() ? 0 : median(values));
    rounds.resize(std::max(rounds.size(), values.size()));
    for (std::size_t round = 0; round < values.size(); ++round) rounds[round] += values[round];
  }
  const double sum = std::accumulate(medians.begin(), medians.end(), 0.0);
  for (double& ms : medians) ms *= sum > 0 ? median(rounds) / sum : 1;
  return medians;
}

}  // namespace

std::int64_t parameter_elements(const CompiledGraph& step) {
  std::int64_t sum = 0;
  for (const GraphParameter& parameter : step.graph.parameters) sum += parameter.spec.shape.elements();
  return sum;
}

void OpSamples::add(const LaunchTime& time) {
  passed.push_back(time.passed);
  worked.push_back(time.worked);
}

// A ring buffer in which floating-point tensors overwrite each other. Indices, labels and sums have
// memory of their own, because a wrong index could make a kernel read outside of memory.
class OpTimer::Ring {
 public:
  Ring(const CompiledGraph& step, kernels::Backend backend, const kernels::StepControl* control,
       std::int64_t memory_limit)
      : step_(step), backend_(backend), control_(control), touched_(step.descs.size(), false) {
    for (const Node& node : step.graph.nodes)
      for (const auto* operands : {&node.inputs, &node.outputs})
        for (const TensorId id : *operands) touched_[at(id)] = true;
    std::int64_t own = 0, shared = 0, largest = 0;
    for (std::size_t id = 0; id < step.descs.size(); ++id)
      if (touched_[id]) (in_ring(id) ? shared : own) += bytes(id);
    for (std::size_t node = 0; node < step.kernels.size(); ++node)
      largest = std::max(largest, footprint(node));
    if (memory_limit > 0) shared = std::min(shared, memory_limit - own);
    // The ring must hold at least the largest operation. The tensors outside the ring come after it
    // in memory, so its size is padded to the alignment.
    size_ = padded(std::max(shared, largest));
    arena_ = kernels::Arena(backend, static_cast<std::size_t>(own + size_));
    address_.assign(step.descs.size(), -1);
    std::int64_t next = size_;
    for (std::size_t id = 0; id < step.descs.size(); ++id)
      if (touched_[id] && !in_ring(id)) address_[id] = std::exchange(next, next + bytes(id));
    fill();
  }

  // Binds a node to operands and a workspace in the ring. These do not overlap each other, but may
  // overlap the operands of earlier nodes.
  kernels::Launch bind(std::size_t node) {
    const Node& of = step_.graph.nodes[node];
    std::vector<TensorId> operands = of.inputs;
    operands.insert(operands.end(), of.outputs.begin(), of.outputs.end());
    std::ranges::sort(operands);
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    const auto workspace = padded(static_cast<std::int64_t>(step_.kernels[node].workspace_bytes));
    std::int64_t missing = workspace;
    std::vector<Range> placed;
    for (const TensorId id : operands)
      if (address_[at(id)] < 0)
        missing += bytes(at(id));
      else if (in_ring(at(id)))
        placed.emplace_back(address_[at(id)], address_[at(id)] + bytes(at(id)));
    if (next_ + missing > size_) next_ = 0;
    placed.emplace_back(next_, next_ + missing);
    for (const TensorId id : operands) place(id);
    std::int64_t scratch = std::exchange(next_, next_ + workspace);
    if (overlap(std::move(placed))) {
      next_ = 0;
      for (const TensorId id : operands)
        if (in_ring(at(id))) address_[at(id)] = -1, place(id);
      scratch = std::exchange(next_, next_ + workspace);
    }
    std::vector<void*> inputs, outputs;
    for (const TensorId id : of.inputs) inputs.push_back(aligned(address_[at(id)]));
    for (const TensorId id : of.outputs) outputs.push_back(aligned(address_[at(id)]));
    return step_.kernels[node].bind({inputs, outputs, arena_.data() + scratch, control_});
  }

  void fill() { fill_with_numbers(backend_, arena_.data(), size_); }

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;

  void* aligned(std::int64_t address) {
    if (address % kAlignment != 0)
      throw std::logic_error("internal error: an operand to be timed is not aligned");
    return arena_.data() + address;
  }
  std::int64_t bytes(std::size_t id) const {
    return padded(static_cast<std::int64_t>(step_.descs[id].bytes()));
  }
  bool in_ring(std::size_t id) const {
    return step_.descs[id].dtype == DType::f32 || step_.descs[id].dtype == DType::bf16;
  }
  std::int64_t footprint(std::size_t node) const {
    std::int64_t sum = padded(static_cast<std::int64_t>(step_.kernels[node].workspace_bytes));
    for (const auto* operands : {&step_.graph.nodes[node].inputs, &step_.graph.nodes[node].outputs})
      for (const TensorId id : *operands) sum += bytes(at(id));
    return sum;
  }
  void place(TensorId id) {
    if (address_[at(id)] < 0) address_[at(id)] = std::exchange(next_, next_ + bytes(at(id)));
  }
  static bool overlap(std::vector<Range> ranges) {
    std::ranges::sort(ranges);
    for (std::size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second) return true;
    return false;
  }

  const CompiledGraph& step_;
  const kernels::Backend backend_;
  const kernels::StepControl* const control_;
  std::vector<bool> touched_;  // for each TensorId: whether a node reads or writes the tensor
  kernels::Arena arena_;
  std::int64_t size_ = 0, next_ = 0;
  // For each TensorId: the tensor's latest offset in the arena; -1: none yet.
  std::vector<std::int64_t> address_;
};

OpTimer::OpTimer(const CompiledGraph& step, kernels::Backend backend, const kernels::StepControl* control,
                 std::int64_t memory_limit)
    : ring_(std::make_unique<Ring>(step, backend, control, memory_limit)) {
  std::vector<kernels::Launch> launches;
  for (std::size_t node = 0; node < step.kernels.size(); ++node) {
    const bool computes = !step.graph.nodes[node].is<AllReduce>() && !step.graph.nodes[node].is<Transfer>();
    computes_.push_back(computes);
    launches.push_back(computes ? ring_->bind(node) : kernels::Launch{});
  }
  timer_ = make_launch_timer(backend, std::move(launches));
}
OpTimer::~OpTimer() = default;

void OpTimer::round(StepSamples& samples) {
  samples.resize(computes_.size());
  std::vector<LaunchTime> times = timer_->round();
  if (const double whole = timer_->undivided_round(); whole > 0) scale_to(times, whole);
  for (std::size_t node = 0; node < times.size(); ++node)
    if (computes_[node]) samples[node].add(times[node]);
  ring_->fill();
}

MeasuredOps typical_times(const StepSamples& samples) {
  MeasuredOps result;
  result.passed.node_ms = typical(samples, &OpSamples::passed);
  result.worked.node_ms = typical(samples, &OpSamples::worked);
  for (const OpSamples& node : samples)
    result.rounds = std::max(result.rounds, static_cast<int>(node.passed.size()));
  return result;
}

MeasuredOps measure_op_times(const CompiledGraph& step, kernels::Backend backend,
                             const kernels::StepControl* control, std::int64_t memory_limit) {
  constexpr double kEnoughMs = 1200;
  constexpr int kFewest = 3, kMost = 6;
  OpTimer timer(step, backend, control, memory_limit);
  StepSamples samples;
  timer.round(samples);
  samples.clear();
  const auto begin = Clock::now();
  for (int round = 0; round < kMost && (round < kFewest || ms_since(begin) < kEnoughMs); ++round)
    timer.round(samples);
  return typical_times(samples);
}

void measure_update_time(kernels::Backend backend, const kernels::StepControl* control,
                         const kernels::OptimizerProblem& optimizer, std::int64_t elements,
                         std::int64_t memory_limit, MeasuredOps& result) {
  constexpr int kRounds = 7;
  const int buffers = kernels::optimizer_inputs(optimizer);
  const auto element_bytes = static_cast<std::int64_t>(sizeof(float)) * buffers;
  if (memory_limit > 0) elements = std::min(elements, memory_limit / element_bytes);
  elements = elements / 64 * 64;
  if (elements <= 0) return;
  const kernels::TensorDesc flat{DType::f32, {elements}, kernels::Layout::row_major, nullptr};
  kernels::OptimizerProblem problem = optimizer;
  problem.segments = {{0, elements, true, true}};
  kernels::KernelRequest request{std::vector(static_cast<std::size_t>(buffers), flat), {}};
  const kernels::Kernel kernel = kernels::optimizer_update(backend, problem, request);
  const kernels::Arena arena(backend,
                             static_cast<std::size_t>(elements * element_bytes) + kernel.workspace_bytes);
  std::vector<void*> inputs;
  for (int i = 0; i <= buffers; ++i)  // the last pointer is that of the workspace
    inputs.push_back(arena.data() + i * elements * static_cast<std::int64_t>(sizeof(float)));
  void* workspace = inputs.back();
  inputs.pop_back();
  fill_with_numbers(backend, arena.data(), elements * element_bytes);
  const auto timer = make_launch_timer(backend, {kernel.bind({inputs, {}, workspace, control})});
  OpSamples samples;
  for (int round = 0; round < kRounds; ++round) samples.add(timer->round()[0]);
  result.passed.update_ms_per_element = median(samples.passed) / static_cast<double>(elements);
  result.worked.update_ms_per_element = median(samples.worked) / static_cast<double>(elements);
}

}  // namespace convoy::app
