#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/device/cuda_runtime.h"
#include "kernels/gemm/measure.h"
#include "kernels/gemm/oracle.h"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

constexpr std::int64_t kMostSamples = 20000;
constexpr double kSlow = 100e3;        // microseconds; of what takes longer one run will do
constexpr double kCacheBytes = 256e6;  // several times the largest L2

// Rows or columns of the corners and of the tiles' edges, then random ones.
std::vector<Sample> choose_samples(const Problem& p, std::uint64_t seed) {
  std::vector<Sample> samples;
  const auto add = [&](std::int64_t row, std::int64_t column) {
    samples.push_back({std::int32_t(row), std::int32_t(column), 0, 0, 0});
  };
  if (p.m * p.n <= kMostSamples) {
    for (std::int64_t i = 0; i < p.m * p.n; ++i) add(i / p.n, i % p.n);
    return samples;
  }
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t extent) { return std::int64_t(random() % std::uint64_t(extent)); };
  // The longer k, the fewer samples: about as many products as a small matrix has.
  const std::int64_t count = std::clamp<std::int64_t>(std::int64_t{200'000'000} / p.k, 512, kMostSamples);
  for (const std::int64_t row : {std::int64_t{0}, p.m - 1})
    for (const std::int64_t column : {std::int64_t{0}, p.n - 1}) add(row, column);
  for (std::int64_t i = 0; i < count / 8; ++i) {
    add(p.m - 1 - draw(std::min<std::int64_t>(p.m, 256)), draw(p.n));
    add(draw(p.m), p.n - 1 - draw(std::min<std::int64_t>(p.n, 256)));
  }
  while (std::int64_t(samples.size()) < count) add(draw(p.m), draw(p.n));
  return samples;
}

// fp32 sums of k products: rounding grows like a random walk; tf32 drops the last 13 bits of either factor.
Check judge(const Problem& p, const std::vector<Sample>& samples) {
  const double unit = std::ldexp(1.0, -24);
  const double of_products =
      unit * (8 + 2 * std::sqrt(double(p.k))) + (p.math == Math::tf32 ? std::ldexp(1.0, -9) : 0);
  const double of_result = p.output == DType::bf16 ? std::ldexp(1.0, -8) : 2 * unit;
  Check check;
  check.samples = std::int64_t(samples.size());
  double difference = 0, norm = 0;
  bool finite = true;
  for (const auto& s : samples) {
    const double error = std::abs(s.found - s.expected);
    finite = finite && std::isfinite(s.found);
    const double bound = of_products * s.magnitude + of_result * std::abs(s.expected) + 1e-30;
    check.worst = std::max(check.worst, error / bound);
    difference += error * error;
    norm += s.expected * s.expected;
  }
  check.relative_error = std::sqrt(difference / std::max(norm, 1e-300));
  // Far below what one forgotten stage of k would leave.
  const double limit = p.output == DType::bf16 ? 4e-3 : p.math == Math::tf32 ? 2e-3 : 3e-4;
  check.correct = finite && check.worst <= 1 && check.relative_error <= limit;
  return check;
}

}  // namespace

struct Bench::State {
  struct Set {
    DeviceBuffer a, b, c;
  };
  Problem problem;
  std::vector<Set> sets;
  DeviceBuffer bias, column_sums, workspace;
  CudaStream stream;

  std::int64_t elements_a() const { return (problem.transpose_a ? problem.k : problem.m) * problem.lda; }
  std::int64_t elements_b() const { return (problem.transpose_b ? problem.n : problem.k) * problem.ldb; }
  std::int64_t elements_c() const { return problem.m * problem.ldc; }
  DType input() const { return problem.math == Math::bf16 ? DType::bf16 : DType::f32; }

  void draw(const Set& set, std::uint64_t seed) const {
    fill_random(set.a.data(), input(), elements_a(), seed * 4 + 1, stream.get());
    fill_random(set.b.data(), input(), elements_b(), seed * 4 + 2, stream.get());
    if (problem.beta != 0)
      fill_random(set.c.data(), problem.output, elements_c(), seed * 4 + 3, stream.get());
  }
  Buffers buffers(const Set& set) const {
    return {set.a.data(),
            set.b.data(),
            set.c.data(),
            reinterpret_cast<const float*>(bias.data()),
            reinterpret_cast<double*>(column_sums.data()),
            workspace.data()};
  }
  void reserve(const Plan& plan) {
    if (workspace.bytes() >= plan.workspace_bytes) return;
    workspace = DeviceBuffer();
    workspace = DeviceBuffer(plan.workspace_bytes);
  }
};

Bench::Bench(const Problem& problem) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.problem = problem.checked();
  const double bytes = s.problem.bytes();
  const int sets = int(std::clamp(std::ceil(kCacheBytes / bytes), 1.0, 16.0));
  for (int i = 0; i < sets; ++i) {
    s.sets.push_back({DeviceBuffer(std::size_t(s.elements_a()) * s.problem.element_bytes()),
                      DeviceBuffer(std::size_t(s.elements_b()) * s.problem.element_bytes()),
                      DeviceBuffer(std::size_t(s.elements_c()) * bytes_of(s.problem.output))});
    s.draw(s.sets.back(), std::uint64_t(i) + 1000);
  }
  s.bias = DeviceBuffer(std::size_t(s.problem.n) * sizeof(float));
  fill_random(s.bias.data(), DType::f32, s.problem.n, 7, s.stream.get());
  s.column_sums = DeviceBuffer(std::size_t(s.problem.n) * 2 * sizeof(double));
  s.stream.synchronize();
}
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;

Check Bench::check(const Plan& plan, std::uint64_t seed) {
  State& s = *state_;
  s.reserve(plan);
  const State::Set& set = s.sets.front();
  const Buffers buffers = s.buffers(set);
  s.draw(set, seed);
  DeviceBuffer before;
  if (s.problem.beta != 0) {
    before = DeviceBuffer(set.c.bytes());
    CONVOY_CUDA(cudaMemcpyAsync(before.data(), set.c.data(), set.c.bytes(), cudaMemcpyDeviceToDevice,
                                s.stream.get()));
  } else {
    CONVOY_CUDA(cudaMemsetAsync(set.c.data(), 0xff, set.c.bytes(), s.stream.get()));  // NaN in either type
  }
  bind(s.problem, plan, buffers)(s.stream.view());
  std::vector<Sample> samples = choose_samples(s.problem, seed);
  const std::size_t bytes = samples.size() * sizeof(Sample);
  const DeviceBuffer on_device(bytes);
  auto* device_samples = reinterpret_cast<Sample*>(on_device.data());
  CONVOY_CUDA(cudaMemcpyAsync(device_samples, samples.data(), bytes, cudaMemcpyHostToDevice, s.stream.get()));
  evaluate_samples(s.problem, buffers, before.data(), device_samples, std::int64_t(samples.size()),
                   s.stream.get());
  CONVOY_CUDA(cudaMemcpyAsync(samples.data(), device_samples, bytes, cudaMemcpyDeviceToHost, s.stream.get()));
  s.stream.synchronize();
  return judge(s.problem, samples);
}

std::vector<Timing> Bench::time(const std::vector<Plan>& plans, double budget, int samples) {
  State& s = *state_;
  for (const Plan& plan : plans) s.reserve(plan);
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
  for (const Plan& plan : plans) {
    std::vector<Launch> launches;
    for (const auto& set : s.sets) launches.push_back(bind(s.problem, plan, s.buffers(set)));
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
  std::vector<Timing> timings;
  for (auto& one : contenders) {
    std::sort(one.times.begin(), one.times.end());
    timings.push_back({one.times[one.times.size() / 2], one.times.front(), one.times.back()});
  }
  return timings;
}

bool device_present() {
  int count = 0;
  const bool present = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return present;
}

DeviceSummary summarize_device() {
  int device = 0;
  CONVOY_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  CONVOY_CUDA(cudaGetDeviceProperties(&properties, device));
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const DeviceBuffer from(kBytes), to(kBytes);
  fill_random(from.data(), DType::f32, kBytes / 4, 1, nullptr);
  const CudaEvent begin(CudaEvent::Timing::on), end(CudaEvent::Timing::on);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 6; ++i) {
    begin.record(nullptr);
    CONVOY_CUDA(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, nullptr));
    end.record(nullptr);
    end.synchronize();
    best = std::min(best, CudaEvent::microseconds(begin, end));
  }
  return {properties.name, properties.multiProcessorCount, 2.0 * double(kBytes) / (best * 1e-6)};
}

}  // namespace convoy::kernels::gemm
