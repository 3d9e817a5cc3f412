#include "app/runtime/op_times.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>

#include "kernels/device/arena.h"
#include "kernels/device/philox.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::DType;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

std::int64_t padded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Floating-point tensors share the ring. Indices, labels and sums have their own places: kernels trust what they read
// there.
class Ring {
 public:
  Ring(const PreparedGraph& step, kernels::Backend backend, std::int64_t memory_limit) : step_(step) {
    std::int64_t own = 0, shared = 0, largest = 0;
    for (std::size_t id = 0; id < step.descs.size(); ++id) (in_ring(id) ? shared : own) += bytes(id);
    for (std::size_t node = 0; node < step.kernels.size(); ++node)
      largest = std::max(largest, footprint(node));
    if (memory_limit > 0) shared = std::min(shared, memory_limit - own);
    // Room to start anew behind any operation.
    size_ = std::max(shared, largest) + padded(64);
    arena_ = kernels::Arena(backend, static_cast<std::size_t>(own + size_));
    address_.assign(step.descs.size(), -1);
    std::int64_t next = size_;
    for (std::size_t id = 0; id < step.descs.size(); ++id)
      if (!in_ring(id)) address_[id] = std::exchange(next, next + bytes(id));
    fill();
  }

  // Addresses of a node's operands that do not overlap, and its workspace behind them.
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
    for (const TensorId id : of.inputs) inputs.push_back(arena_.data() + address_[at(id)]);
    for (const TensorId id : of.outputs) outputs.push_back(arena_.data() + address_[at(id)]);
    return step_.kernels[node].bind({inputs, outputs, arena_.data() + scratch});
  }

  float* floats() { return reinterpret_cast<float*>(arena_.data()); }
  std::int64_t float_count() const { return size_ / static_cast<std::int64_t>(sizeof(float)); }

  // Moderate numbers everywhere: a kernel's time may depend on them (denormals), and rounds make them grow.
  void fill() {
    constexpr std::int64_t kPattern = 4096;
    std::vector<float> pattern(kPattern);
    for (std::int64_t i = 0; i < kPattern; ++i)
      pattern[static_cast<std::size_t>(i)] =
          kernels::uniform(kernels::philox(7, static_cast<std::uint64_t>(i)).word[0]) - 0.5f;
    for (std::int64_t i = 0; i < float_count(); i += kPattern)
      std::copy_n(pattern.begin(), std::min(kPattern, float_count() - i), floats() + i);
  }

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;

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

  const PreparedGraph& step_;
  kernels::Arena arena_;
  std::int64_t size_ = 0, next_ = 0;
  std::vector<std::int64_t> address_;  // of every tensor, where it was placed last; -1: nowhere yet
};

// On as many elements as there is room for.
double measure_update(Ring& ring, kernels::Backend backend, const kernels::StepControl& control,
                      const kernels::OptimizerProblem& optimizer, std::int64_t elements) {
  const int buffers = 2 + kernels::optimizer_states(optimizer);
  const std::int64_t count = std::min(elements, ring.float_count() / buffers / 64 * 64 - 64);
  if (count <= 0) return 0;
  const kernels::TensorDesc flat{DType::f32, {count}, kernels::Layout::row_major, nullptr};
  kernels::OptimizerProblem problem = optimizer;
  problem.segments = {{0, count, true, true}};
  kernels::KernelRequest request{std::vector(static_cast<std::size_t>(buffers), flat), {}, &control};
  const kernels::Kernel kernel = kernels::optimizer_update(backend, problem, request);
  std::vector<void*> inputs;
  for (int i = 0; i < buffers; ++i) inputs.push_back(ring.floats() + i * count);
  std::vector<std::byte> workspace(kernel.workspace_bytes + 64);
  void* place = workspace.data();
  std::size_t room = workspace.size();
  std::align(64, kernel.workspace_bytes, place, room);
  const kernels::Launch launch = kernel.bind({inputs, {}, place});
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    launch(nullptr);
    times.push_back(ms_since(start));
  }
  return median(times) / static_cast<double>(count);
}

std::int64_t parameter_elements(const PreparedGraph& step) {
  std::int64_t sum = 0;
  for (const TrainableParameter& parameter : step.graph.parameters) sum += parameter.spec.shape.elements();
  return sum;
}

}  // namespace

OpTimes measure_op_times(const PreparedGraph& step, kernels::Backend backend,
                         const kernels::StepControl& control, const kernels::OptimizerProblem& optimizer,
                         std::int64_t memory_limit) {
  constexpr double kEnoughMs = 2000;
  constexpr std::size_t kFewest = 3, kMost = 12;
  Ring ring(step, backend, memory_limit);
  std::vector<kernels::Launch> launches;
  for (std::size_t node = 0; node < step.kernels.size(); ++node)
    launches.push_back(step.graph.nodes[node].is_all_reduce() ? kernels::Launch{} : ring.bind(node));
  std::vector<std::vector<double>> times(launches.size());
  std::vector<double> rounds;
  const auto begin = Clock::now();
  for (std::size_t round = 0; round <= kMost; ++round) {  // the first warms up
    if (round > kFewest && ms_since(begin) > kEnoughMs) break;
    double sum = 0;
    for (std::size_t node = 0; node < launches.size(); ++node) {
      if (!launches[node]) continue;
      const auto start = Clock::now();
      launches[node](nullptr);
      const double ms = ms_since(start);
      sum += ms;
      if (round > 0) times[node].push_back(ms);
    }
    if (round > 0) rounds.push_back(sum);
    ring.fill();
  }
  OpTimes result;
  for (const auto& of_node : times) result.node_ms.push_back(of_node.empty() ? 0 : median(of_node));
  // What disturbs one operation in ten disturbs every step: the medians are scaled to a median round.
  const double sum = std::accumulate(result.node_ms.begin(), result.node_ms.end(), 0.0);
  for (double& ms : result.node_ms) ms *= sum > 0 ? median(rounds) / sum : 1;
  result.update_ms_per_element = measure_update(ring, backend, control, optimizer, parameter_elements(step));
  return result;
}

}  // namespace convoy::app
