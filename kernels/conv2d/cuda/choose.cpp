// Chooses the plan of a convolution: the tuning file's plan; else, if measuring is allowed, the
// plan that is the fastest when measured here; else the plan that is expected to be the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/conv2d/bench/measure.h"
#include "kernels/device/tuning.h"

namespace convoy::kernels::conv {
namespace {

constexpr int kPlansOfAnEngine = 4;
constexpr double kSampleMicroseconds = 500;

std::string key_of(const Task& task) {
  return fmt::format("{} | conv2d {}{}{}{}{}{}{}", gemm::device_name(), task.to_string(),
                     task.bias ? " bias" : "", task.relu ? " relu" : "", task.statistics ? " statistics" : "",
                     task.input_relu ? " input relu" : "", task.input_norm ? " input norm" : "",
                     task.input_affine ? " input affine" : "");
}

}  // namespace

std::vector<Plan> worth_timing(const Task& task, int of_each_engine) {
  std::vector<Plan> plans;
  std::map<Engine, int> taken;
  const std::vector<Plan> all = candidates(task);
  for (const Plan& plan : all) {
    // If the depthwise engine supports the task, time no other engine: none is nearly as fast.
    if (all.front().engine == Engine::depthwise && plan.engine != Engine::depthwise) continue;
    // A fallback (is_fallback(), engines.h) is timed only if the first plan, which is expected to
    // be the fastest, is one. Then only the first plan's engine is timed or, in a convolution with
    // groups, both fallbacks, because either may be the faster one.
    const bool groups = task.geometry.groups > 1 && is_fallback(all.front().engine);
    if (is_fallback(plan.engine) && plan.engine != all.front().engine && !groups) continue;
    if (plan.fuses_extra == all.front().fuses_extra && taken[plan.engine]++ < of_each_engine)
      plans.push_back(plan);
  }
  return plans;
}

Plan chosen(const Task& task) {
  const std::string key = key_of(task);
  if (const auto name = tuning::find(key)) {
    const std::vector<Plan> all = candidates(task);
    // Ignore a recorded plan that would run the extra work (Task::has_extra) as a separate pass,
    // although a kernel can fuse it: the record is older than that kernel.
    for (const Plan& plan : all)
      if (plan.to_string() == *name && plan.fuses_extra == all.front().fuses_extra) return plan;
  }
  const std::vector<Plan> plans = worth_timing(task, kPlansOfAnEngine);
  if (!tuning::measures() || plans.size() == 1) return plans.front();
  Bench bench(task);
  const std::vector<gemm::Timing> times = bench.time(plans, kSampleMicroseconds);
  const auto best = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return a.microseconds < b.microseconds;
  });
  const Plan& plan = plans[std::size_t(best - times.begin())];
  tuning::keep(key, plan.to_string());
  return plan;
}

}  // namespace convoy::kernels::conv
