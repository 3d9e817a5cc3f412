#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/device/cuda_runtime.h"
#include "kernels/gemm/bench/cuda_bench.h"
#include "kernels/gemm/bench/oracle.h"
#include "kernels/gemm/rungs.h"

namespace convoy::kernels::gemm {
namespace {

constexpr std::int64_t kMostSamples = 20000;

// Chooses the corners of C, then elements near its last rows and columns, then random elements.
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
  // With larger k, fewer elements are sampled, so that the number of products stays about the same.
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

}  // namespace

struct Bench::State {
  struct Set {
    DeviceBuffer a, b, c;
  };
  Problem problem;
  std::vector<Set> sets;
  DeviceBuffer bias, column_sums, workspace;

  std::int64_t elements_a() const { return (problem.transpose_a ? problem.k : problem.m) * problem.lda; }
  std::int64_t elements_b() const { return (problem.transpose_b ? problem.n : problem.k) * problem.ldb; }
  std::int64_t elements_c() const { return problem.m * problem.ldc; }
  DType input() const { return problem.math == Math::bf16 ? DType::bf16 : DType::f32; }

  void draw(const Set& set, std::uint64_t seed) const {
    fill_random(set.a.data(), input(), elements_a(), seed * 4 + 1, kBenchStream);
    fill_random(set.b.data(), input(), elements_b(), seed * 4 + 2, kBenchStream);
    if (problem.beta != 0)
      fill_random(set.c.data(), problem.output, elements_c(), seed * 4 + 3, kBenchStream);
  }
  Buffers buffers(const Set& set) const {
    return {set.a.data(),
            set.b.data(),
            set.c.data(),
            reinterpret_cast<const float*>(bias.data()),
            reinterpret_cast<double*>(column_sums.data()),
            workspace.data()};
  }
};

Bench::Bench(const Problem& problem) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.problem = problem.checked();
  for (int i = 0; i < operand_sets(s.problem.bytes()); ++i) {
    s.sets.push_back({DeviceBuffer(std::size_t(s.elements_a()) * s.problem.element_bytes()),
                      DeviceBuffer(std::size_t(s.elements_b()) * s.problem.element_bytes()),
                      DeviceBuffer(std::size_t(s.elements_c()) * bytes_of(s.problem.output))});
    s.draw(s.sets.back(), std::uint64_t(i) + 1000);
  }
  s.bias = DeviceBuffer(std::size_t(s.problem.n) * sizeof(float));
  fill_random(s.bias.data(), DType::f32, s.problem.n, 7, kBenchStream);
  s.column_sums = DeviceBuffer(std::size_t(s.problem.n) * 2 * sizeof(double));
  CONVOY_CUDA(cudaStreamSynchronize(kBenchStream));
}
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;

Check Bench::check(const Plan& plan, std::uint64_t seed) {
  State& s = *state_;
  reserve(s.workspace, plan.workspace_bytes);
  const State::Set& set = s.sets.front();
  const Buffers buffers = s.buffers(set);
  s.draw(set, seed);
  DeviceBuffer before;
  if (s.problem.beta != 0) {
    before = DeviceBuffer(set.c.bytes());
    CONVOY_CUDA(
        cudaMemcpyAsync(before.data(), set.c.data(), set.c.bytes(), cudaMemcpyDeviceToDevice, kBenchStream));
  } else {
    // These bytes are NaN as f32 and as bf16, so that an element that the plan fails to write is
    // found.
    CONVOY_CUDA(cudaMemsetAsync(set.c.data(), 0xff, set.c.bytes(), kBenchStream));
  }
  bind(s.problem, plan, buffers)(Stream(kBenchStream));
  std::vector<Sample> samples = choose_samples(s.problem, seed);
  const std::size_t bytes = samples.size() * sizeof(Sample);
  const DeviceBuffer on_device(bytes);
  auto* device_samples = reinterpret_cast<Sample*>(on_device.data());
  CONVOY_CUDA(cudaMemcpyAsync(device_samples, samples.data(), bytes, cudaMemcpyHostToDevice, kBenchStream));
  evaluate_samples(s.problem, buffers, before.data(), device_samples, std::int64_t(samples.size()),
                   kBenchStream);
  CONVOY_CUDA(cudaMemcpyAsync(samples.data(), device_samples, bytes, cudaMemcpyDeviceToHost, kBenchStream));
  CONVOY_CUDA(cudaStreamSynchronize(kBenchStream));
  return judge(samples, bounds_of(s.problem.math, s.problem.output, s.problem.k));
}

std::vector<Timing> Bench::time(const std::vector<Plan>& plans, double budget, int samples) {
  State& s = *state_;
  for (const Plan& plan : plans) reserve(s.workspace, plan.workspace_bytes);
  std::vector<std::vector<Launch>> contenders;
  for (const Plan& plan : plans) {
    auto& launches = contenders.emplace_back();
    for (const auto& set : s.sets) launches.push_back(bind(s.problem, plan, s.buffers(set)));
  }
  return time_in_turns(contenders, budget, samples);
}

bool device_present() {
  int count = 0;
  const bool present = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return present;
}

DeviceSummary summarize_device() {
  if (!device_present()) throw std::runtime_error("no CUDA device is visible, expected one");
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
