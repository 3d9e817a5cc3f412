// Chooses the plan of a product. If the tuning file has a plan, uses it. Otherwise, if measuring is
// allowed, uses the plan that is measured to be the fastest on this device (cuBLAS included).
// Otherwise uses the plan of our own kernels that is expected to be the fastest.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/cuda_error.h"
#include "kernels/device/tuning.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::kernels::gemm {
namespace {

constexpr std::size_t kPlansOfARung = 4;
constexpr double kSampleMicroseconds = 500;

std::string key_of(const Problem& p) {
  return fmt::format("{} | gemm {} pitches {},{},{}{}{}{}", device_name(), p.to_string(), p.lda, p.ldb, p.ldc,
                     p.beta != 0 ? " beta" : "", p.bias ? " bias" : "", p.relu ? " relu" : "");
}

}  // namespace

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  CONVOY_CUDA(cudaGetDevice(&device));
  CONVOY_CUDA(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

Plan chosen(const Problem& problem) {
  const Problem p = problem.checked();
  std::vector<Plan> plans{plan(p)};
  for (const Rung rung : {Rung::register_tiles, Rung::wgmma, Rung::mma_sync, Rung::cublas}) {
    if (!supports(rung, p)) continue;
    std::vector<Plan> own = candidates(rung, p);
    own.resize(std::min(own.size(), kPlansOfARung));
    for (const Plan& one : own)
      if (one.to_string() != plans.front().to_string()) plans.push_back(one);
  }
  const std::string key = key_of(p);
  if (const auto name = tuning::find(key))
    for (const Plan& one : plans)
      if (one.to_string() == *name) return one;
  if (!tuning::measures() || plans.size() == 1) return plans.front();
  const std::vector<Timing> times = Bench(p).time(plans, kSampleMicroseconds);
  const auto best = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return a.microseconds < b.microseconds;
  });
  tuning::keep(key, plans[std::size_t(best - times.begin())].to_string());
  return plans[std::size_t(best - times.begin())];
}

}  // namespace convoy::kernels::gemm
