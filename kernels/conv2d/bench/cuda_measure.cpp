#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/conv2d/bench/measure.h"
#include "kernels/conv2d/bench/oracle.h"
#include "kernels/gemm/bench/cuda_bench.h"
#include "kernels/gemm/bench/oracle.h"

namespace convoy::kernels::conv {
namespace {

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

}  // namespace

struct Bench::State {
  struct Set {
    DeviceBuffer images, other, out;
  };
  Task task;
  std::vector<Set> sets;
  DeviceBuffer bias, dbias, sums, x, affine, control, workspace;
  // Operands of Conv2dProblem::input_norm, in addition to `x` and `sums`.
  DeviceBuffer dy2, mask, norm_sums, dgamma;

  bool weights() const { return task.direction == Direction::backward_weights; }
  void draw(const Set& set, std::uint64_t seed) const {
    const Sizes sizes = sizes_of(task);
    gemm::fill_random(set.images.data(), task.type(), sizes.images, seed * 4 + 1, gemm::kBenchStream);
    gemm::fill_random(set.other.data(), task.type(), weights() ? sizes.y : sizes.filters, seed * 4 + 2,
                      gemm::kBenchStream);
  }
  Buffers buffers(const Set& set) const {
    Buffers b;
    b.images = set.images.data();
    (weights() ? b.dy : b.weights) = set.other.data();
    b.out = set.out.data();
    b.bias = task.bias && !weights() ? reinterpret_cast<const float*>(bias.data()) : nullptr;
    b.dbias = reinterpret_cast<float*>(dbias.data());
    b.sums = reinterpret_cast<double*>(sums.data());
    b.x = x.data();
    if (task.input_norm)
      b.norm = {.x = x.data(),
                .dy2 = dy2.data(),
                .mask = reinterpret_cast<const std::uint8_t*>(mask.data()),
                .sums = reinterpret_cast<const double*>(norm_sums.data()),
                .dsums = b.sums,
                .dgamma = reinterpret_cast<float*>(dgamma.data()),
                .dbeta = b.dbias,
                .epsilon = 1e-5f};
    if (task.input_affine) b.affine = reinterpret_cast<const float*>(affine.data());
    b.control = reinterpret_cast<const StepControl*>(control.data());
    b.workspace = workspace.data();
    return b;
  }
};

Bench::Bench(const Task& task) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.task = task;
  const Sizes sizes = sizes_of(task);
  const std::size_t type = bytes_of(task.type());
  for (int i = 0; i < gemm::operand_sets(task.bytes()); ++i) {
    s.sets.push_back({DeviceBuffer(std::size_t(sizes.images) * type),
                      DeviceBuffer(std::size_t(s.weights() ? sizes.y : sizes.filters) * type),
                      DeviceBuffer(std::size_t(sizes.out) * (s.weights() ? 4 : type))});
    s.draw(s.sets.back(), std::uint64_t(i) + 1000);
  }
  s.bias = DeviceBuffer(std::size_t(task.geometry.k) * sizeof(float));
  const auto channels = std::size_t(std::max(task.geometry.k, task.geometry.c));
  s.dbias = DeviceBuffer(channels * sizeof(float));
  s.sums = DeviceBuffer(channels * 2 * sizeof(double));
  const auto random = [](DeviceBuffer& buffer, DType of, std::int64_t count, std::uint64_t seed) {
    buffer = DeviceBuffer(std::size_t(count) * bytes_of(of));
    gemm::fill_random(buffer.data(), of, count, seed, gemm::kBenchStream);
  };
  if (task.input_relu || task.input_norm) random(s.x, task.type(), sizes.x, 8);
  if (task.input_affine) random(s.affine, DType::f32, 2 * task.geometry.c, 11);
  if (task.input_norm) {
    random(s.dy2, task.type(), sizes.x, 9);
    const auto pack = std::int64_t(16 / type);  // how many elements one byte of the mask covers
    // Any random bits will do as a mask.
    random(s.mask, DType::f32, (sizes.x / pack + 3) / 4, 10);
    s.dgamma = DeviceBuffer(channels * sizeof(float));
    s.norm_sums = DeviceBuffer(channels * 2 * sizeof(double));
    CONVOY_CUDA(cudaMemsetAsync(s.norm_sums.data(), 0, s.norm_sums.bytes(), gemm::kBenchStream));
  }
  s.control = DeviceBuffer(sizeof(StepControl));
  StepControl control;
  control.valid = control.global_valid = task.geometry.n;
  CONVOY_CUDA(cudaMemcpy(s.control.data(), &control, sizeof control, cudaMemcpyHostToDevice));
  gemm::fill_random(s.bias.data(), DType::f32, task.geometry.k, 7, gemm::kBenchStream);
  CONVOY_CUDA(cudaStreamSynchronize(gemm::kBenchStream));
}
Bench::~Bench() = default;
Bench::Bench(Bench&&) noexcept = default;

gemm::Check Bench::check(const Plan& plan, std::uint64_t seed) {
  return check([&](const Buffers& b) { return bind(state_->task, plan, b); }, plan.workspace_bytes, seed);
}

gemm::Check Bench::check(const Binder& binder, std::size_t workspace_bytes, std::uint64_t seed) {
  State& s = *state_;
  gemm::reserve(s.workspace, workspace_bytes);
  const State::Set& set = s.sets.front();
  s.draw(set, seed);
  // These bytes are NaN as f32 and as bf16, so that an element that the plan fails to write is
  // found.
  CONVOY_CUDA(cudaMemsetAsync(set.out.data(), 0xff, set.out.bytes(), gemm::kBenchStream));
  if (s.workspace.bytes() > 0)
    CONVOY_CUDA(cudaMemsetAsync(s.workspace.data(), 0xff, s.workspace.bytes(), gemm::kBenchStream));
  binder(s.buffers(set))(Stream(gemm::kBenchStream));
  std::vector<Sample> samples = choose_samples(s.task, seed);
  const std::size_t bytes = samples.size() * sizeof(Sample);
  const DeviceBuffer on_device(bytes);
  auto* device_samples = reinterpret_cast<Sample*>(on_device.data());
  CONVOY_CUDA(
      cudaMemcpyAsync(device_samples, samples.data(), bytes, cudaMemcpyHostToDevice, gemm::kBenchStream));
  evaluate_samples(s.task, s.buffers(set), device_samples, std::int64_t(samples.size()), gemm::kBenchStream);
  CONVOY_CUDA(
      cudaMemcpyAsync(samples.data(), device_samples, bytes, cudaMemcpyDeviceToHost, gemm::kBenchStream));
  CONVOY_CUDA(cudaStreamSynchronize(gemm::kBenchStream));
  const DType output = s.weights() ? DType::f32 : s.task.type();
  return gemm::judge(samples, gemm::bounds_of(s.task.math, output, s.task.product().k));
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
  gemm::reserve(s.workspace, workspace_bytes);
  std::vector<std::vector<Launch>> contenders;
  for (const Binder& binder : binders) {
    auto& launches = contenders.emplace_back();
    for (const auto& set : s.sets) launches.push_back(binder(s.buffers(set)));
  }
  return gemm::time_in_turns(contenders, budget, samples);
}

}  // namespace convoy::kernels::conv
