#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/conv2d/measure.h"
#include "kernels/conv2d/oracle.h"
#include "kernels/device/cuda_runtime.h"
#include "kernels/gemm/oracle.h"

namespace convoy::kernels::conv {
namespace {

constexpr double kSlow = 100e3;        // microseconds; of what takes longer one run will do
constexpr double kCacheBytes = 256e6;  // several times the largest L2

struct Sizes {
  std::int64_t x, y, filters;
  std::int64_t images, out;
};
Sizes sizes_of(const Task& task) {
  const Geometry& g = task.geometry;
  Sizes sizes{g.x_pixels() * g.c, g.y_pixels() * g.k, std::int64_t{g.k} * g.taps() * (g.c / g.groups), 0, 0};
  sizes.images = task.direction == Direction::backward_data ? sizes.y : sizes.x;
  sizes.out = task.direction == Direction::forward         ? sizes.y
              : task.direction == Direction::backward_data ? sizes.x
                                                           : sizes.filters;
  return sizes;
}

std::vector<Sample> choose_samples(const Task& task, std::uint64_t seed) {
  const std::int64_t elements = sizes_of(task).out, products = std::max<std::int64_t>(task.product().k, 1);
  const std::int64_t most = std::clamp<std::int64_t>(200'000'000 / products, 512, 20000);
  std::vector<Sample> samples;
  const auto add = [&](std::int64_t index) { samples.push_back({index, 0, 0, 0}); };
  if (elements <= most) {
    for (std::int64_t i = 0; i < elements; ++i) add(i);
    return samples;
  }
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < 64; ++i) add(i), add(elements - 1 - i);
  while (std::int64_t(samples.size()) < most) add(std::int64_t(random() % std::uint64_t(elements)));
  return samples;
}

// The bounds of gemm::Bench: fp32 sums of k products grow like a random walk; tf32 drops 13 bits of either factor.
gemm::Check judge(const Task& task, const std::vector<Sample>& samples) {
  const double unit = std::ldexp(1.0, -24), k = double(task.product().k);
  const bool tf32 = task.math == gemm::Math::tf32, weights = task.direction == Direction::backward_weights;
  const bool rounded = task.math == gemm::Math::bf16 && !weights;
  const double of_products = unit * (8 + 2 * std::sqrt(k)) + (tf32 ? std::ldexp(1.0, -9) : 0);
  const double of_result = rounded ? std::ldexp(1.0, -8) : 2 * unit;
  gemm::Check check;
  check.samples = std::int64_t(samples.size());
  double difference = 0, norm = 0;
  bool finite = true;
  for (const Sample& s : samples) {
    const double error = std::abs(s.found - s.expected);
    finite = finite && std::isfinite(s.found);
    check.worst =
        std::max(check.worst, error / (of_products * s.magnitude + of_result * std::abs(s.expected) + 1e-30));
    difference += error * error;
    norm += s.expected * s.expected;
  }
  check.relative_error = std::sqrt(difference / std::max(norm, 1e-300));
  const double limit = rounded ? 4e-3 : tf32 ? 2e-3 : 3e-4;
  check.correct = finite && check.worst <= 1 && check.relative_error <= limit;
  return check;
}

}  // namespace

struct Bench::State {
  struct Set {
    DeviceBuffer images, other, out;
  };
  Task task;
  std::vector<Set> sets;
  DeviceBuffer bias, dbias, sums, control, workspace;
  CudaStream stream;

  bool weights() const { return task.direction == Direction::backward_weights; }
  void draw(const Set& set, std::uint64_t seed) const {
    const Sizes sizes = sizes_of(task);
    gemm::fill_random(set.images.data(), task.type(), sizes.images, seed * 4 + 1, stream.get());
    gemm::fill_random(set.other.data(), task.type(), weights() ? sizes.y : sizes.filters, seed * 4 + 2,
                      stream.get());
  }
  Buffers buffers(const Set& set) const {
    Buffers b;
    b.images = set.images.data();
    (weights() ? b.dy : b.weights) = set.other.data();
    b.out = set.out.data();
    b.bias = task.bias && !weights() ? reinterpret_cast<const float*>(bias.data()) : nullptr;
    b.dbias = reinterpret_cast<float*>(dbias.data());
    b.sums = reinterpret_cast<double*>(sums.data());
    b.control = reinterpret_cast<const StepControl*>(control.data());
    b.workspace = workspace.data();
    return b;
  }
  void reserve(std::size_t bytes) {
    if (workspace.bytes() >= bytes) return;
    workspace = DeviceBuffer();
    workspace = DeviceBuffer(bytes);
  }
};

Bench::Bench(const Task& task) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.task = task;
  const Sizes sizes = sizes_of(task);
  const std::size_t type = bytes_of(task.type());
  const int sets = int(std::clamp(std::ceil(kCacheBytes / task.bytes()), 1.0, 16.0));
  for (int i = 0; i < sets; ++i) {
    s.sets.push_back({DeviceBuffer(std::size_t(sizes.images) * type),
                      DeviceBuffer(std::size_t(s.weights() ? sizes.y : sizes.filters) * type),
                      DeviceBuffer(std::size_t(sizes.out) * (s.weights() ? 4 : type))});
    s.draw(s.sets.back(), std::uint64_t(i) + 1000);
  }
  s.bias = DeviceBuffer(std::size_t(task.geometry.k) * sizeof(float));
  s.dbias = DeviceBuffer(std::size_t(task.geometry.k) * sizeof(float));
  s.sums = DeviceBuffer(std::size_t(task.geometry.k) * 2 * sizeof(double));
  s.control = DeviceBuffer(sizeof(StepControl));
  StepControl control;
  control.valid = control.global_valid = task.geometry.n;
  CONVOY_CUDA(cudaMemcpy(s.control.data(), &control, sizeof control, cudaMemcpyHostToDevice));
  gemm::fill_random(s.bias.data(), DType::f32, task.geometry.k, 7, s.stream.get());
  s.stream.synchronize();
}
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;

gemm::Check Bench::check(const Plan& plan, std::uint64_t seed) {
  return check([&](const Buffers& b) { return bind(state_->task, plan, b); }, plan.workspace_bytes, seed);
}

gemm::Check Bench::check(const Binder& binder, std::size_t workspace_bytes, std::uint64_t seed) {
  State& s = *state_;
  s.reserve(workspace_bytes);
  const State::Set& set = s.sets.front();
  s.draw(set, seed);
  // NaN in either type.
  CONVOY_CUDA(cudaMemsetAsync(set.out.data(), 0xff, set.out.bytes(), s.stream.get()));
  if (s.workspace.bytes() > 0)
    CONVOY_CUDA(cudaMemsetAsync(s.workspace.data(), 0xff, s.workspace.bytes(), s.stream.get()));
  binder(s.buffers(set))(s.stream.view());
  std::vector<Sample> samples = choose_samples(s.task, seed);
  const std::size_t bytes = samples.size() * sizeof(Sample);
  const DeviceBuffer on_device(bytes);
  auto* device_samples = reinterpret_cast<Sample*>(on_device.data());
  CONVOY_CUDA(cudaMemcpyAsync(device_samples, samples.data(), bytes, cudaMemcpyHostToDevice, s.stream.get()));
  evaluate_samples(s.task, s.buffers(set), device_samples, std::int64_t(samples.size()), s.stream.get());
  CONVOY_CUDA(cudaMemcpyAsync(samples.data(), device_samples, bytes, cudaMemcpyDeviceToHost, s.stream.get()));
  s.stream.synchronize();
  return judge(s.task, samples);
}

std::vector<gemm::Timing> Bench::time(const std::vector<Plan>& plans, double budget, int samples) {
  std::vector<Binder> binders;
  std::size_t bytes = 0;
  for (const Plan& plan : plans) {
    binders.push_back([this, plan](const Buffers& b) { return bind(state_->task, plan, b); });
    bytes = std::max(bytes, plan.workspace_bytes);
  }
  return time(binders, bytes, budget, samples);
}

std::vector<gemm::Timing> Bench::time(const std::vector<Binder>& binders, std::size_t workspace_bytes,
                                      double budget, int samples) {
  State& s = *state_;
  s.reserve(workspace_bytes);
  const CudaEvent begin(CudaEvent::Timing::on), end(CudaEvent::Timing::on);
  const auto timed = [&](const std::function<void()>& run) {
    begin.record(s.stream.get());
    run();
    end.record(s.stream.get());
    end.synchronize();
    return CudaEvent::microseconds(begin, end);
  };
  struct Contender {
    CapturedGraph graph;
    double launches = 0;
    std::vector<double> times;
  };
  std::vector<Contender> contenders;
  for (const Binder& binder : binders) {
    std::vector<Launch> launches;
    for (const auto& set : s.sets) launches.push_back(binder(s.buffers(set)));
    launches.front()(s.stream.view());  // loads the module
    const double once = timed([&] { launches.back()(s.stream.view()); });
    if (once > kSlow) {
      contenders.push_back({{}, 1, {once}});
      continue;
    }
    const int rounds = int(std::clamp(budget / (once * double(launches.size())), 1.0, 64.0));
    contenders.push_back({CapturedGraph::capture([&](Stream stream) {
                            for (int round = 0; round < rounds; ++round)
                              for (const auto& launch : launches) launch(stream);
                          }),
                          double(rounds) * double(launches.size()),
                          {}});
    contenders.back().graph.launch(s.stream.get());
  }
  for (int sample = 0; sample < samples; ++sample)
    for (auto& one : contenders)
      if (one.graph.nodes() > 0)
        one.times.push_back(timed([&] { one.graph.launch(s.stream.get()); }) / one.launches);
  std::vector<gemm::Timing> timings;
  for (auto& one : contenders) {
    std::sort(one.times.begin(), one.times.end());
    timings.push_back({one.times[one.times.size() / 2], one.times.front(), one.times.back()});
  }
  return timings;
}

}  // namespace convoy::kernels::conv
