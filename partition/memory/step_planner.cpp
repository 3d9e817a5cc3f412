#include "partition/memory/step_planner.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace convoy::partition {
namespace {

// For steps with more operations than this, the planner makes fewer attempts.
constexpr int kManyOperations = 1000;
// Tensors smaller than this fraction (1/2048, 1/512 for many operations) of the step's memory are
// not moved to the host.
constexpr std::int64_t kSmallest = 2048, kSmallestOfMany = 512;

}  // namespace

StepPlanner::StepPlanner(StepModel model, const HostLink& link)
    : model_(std::move(model)), link_(link), without_copies_(model_) {
  for (const StepOperation& operation : model_.operations) {
    step_ms_ += operation.ms;
    if (!operation.backward) forward_ms_ += operation.ms;
  }
  most_ = live_peak(model_, single_runs(model_));
}

const RecomputePlanner& StepPlanner::planner(const std::vector<int>& away) const {
  if (away.empty()) return without_copies_;
  if (latest_ == nullptr || latest_away_ != away) {
    latest_ = std::make_unique<const RecomputePlanner>(model_, away, link_);
    latest_away_ = away;
  }
  return *latest_;
}

// Returns the plan with copies of the tensors `away` to host memory. Leaves out copies that are not
// needed to stay within the limit, those of the largest tensors first.
StepPlan StepPlanner::with_copies(const RecomputePlan& plan, std::vector<int> away,
                                  std::int64_t limit) const {
  std::ranges::stable_sort(away, std::greater(), [&](int tensor) { return model_.tensor_bytes[tensor]; });
  for (std::size_t i = 0; i < away.size();) {
    std::vector<int> fewer = away;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const StepSchedule schedule = HostCopies(model_, plan.schedule, fewer, link_).on_demand();
    if (live_peak(model_, schedule) <= limit)
      away = std::move(fewer);
    else
      ++i;
  }
  StepPlan result;
  result.schedule = HostCopies(model_, plan.schedule, away, link_).hidden(limit);
  std::ranges::sort(away);
  result.away = std::move(away);
  result.repeated_ms = plan.repeated_ms;
  result.more_ms = expected_ms(model_, result.schedule, link_) - step_ms_;
  result.live_bytes = live_peak(model_, result.schedule);
  result.host_bytes = host_bytes(model_, result.schedule);
  return result;
}

// Returns tensors to move to host memory so that the schedule's live bytes come down to the limit.
// Chooses one tensor after another, always the one that frees most per byte copied. A tensor frees
// nothing before its copy has ended. So only as many tensors are chosen as the link can copy in
// time.
std::vector<int> StepPlanner::relieving(const StepSchedule& schedule, std::int64_t limit) const {
  const std::int64_t smallest = std::ssize(model_.operations) > kManyOperations ? kSmallestOfMany : kSmallest;
  std::vector<int> candidates;
  for (int tensor = 0; tensor < std::ssize(model_.copyable); ++tensor)
    if (model_.copyable[tensor] && model_.tensor_bytes[tensor] * smallest >= most_)
      candidates.push_back(tensor);
  const HostCopies copies(model_, schedule, candidates, link_);
  std::vector<std::int64_t> over = live_bytes(model_, schedule);
  for (std::int64_t& bytes : over) bytes -= limit;
  std::vector<double> end;
  double now = 0;
  for (const StepRun& run : schedule) end.push_back(now += model_.operations[run.operation].ms);

  std::vector<const HostCopies::Absence*> left, chosen;
  for (const HostCopies::Absence& absence : copies.absences())
    if (absence.leaves) left.push_back(&absence);
  // Returns a range of runs during which the tensor of this absence is not in device memory: from
  // the first number up to but not including the second. The range may be empty.
  const auto window = [&](const HostCopies::Absence& of) {
    if (!link_.overlaps) return std::pair(of.last + 1, of.next);
    double out = 0;
    for (const auto* other : chosen)
      if (other->written < of.written)
        out = std::max(out, end[other->written]) + link_.out_ms(model_.tensor_bytes[other->tensor]);
    out = std::max(out, end[of.written]) + link_.out_ms(model_.tensor_bytes[of.tensor]);
    const double back = end[of.next - 1] - link_.back_ms(model_.tensor_bytes[of.tensor]);
    const auto first =
        std::max<int>(of.last + 1, static_cast<int>(std::ranges::lower_bound(end, out) - end.begin()) + 1);
    const auto last = static_cast<int>(std::ranges::lower_bound(end, back) - end.begin());
    return std::pair(first, std::max(first, std::min(last, of.next)));
  };
  std::int64_t space = link_.host_bytes;
  while (std::ranges::any_of(over, [](std::int64_t bytes) { return bytes > 0; })) {
    const HostCopies::Absence* best = nullptr;
    double most = 0;
    for (const HostCopies::Absence* of : left) {
      const std::int64_t bytes = model_.tensor_bytes[of->tensor];
      if (bytes > space) continue;
      const auto [first, last] = window(*of);
      double relief = 0;
      for (int run = first; run < last; ++run)
        relief += static_cast<double>(std::clamp<std::int64_t>(over[run], 0, bytes));
      if (relief / static_cast<double>(bytes) > most) best = of, most = relief / static_cast<double>(bytes);
    }
    if (best == nullptr) break;
    const auto [first, last] = window(*best);
    for (int run = first; run < last; ++run) over[run] -= model_.tensor_bytes[best->tensor];
    space -= model_.tensor_bytes[best->tensor];
    chosen.push_back(best);
    std::erase(left, best);
    std::ranges::stable_sort(chosen, {}, &HostCopies::Absence::written);
  }
  std::vector<int> tensors;
  for (const HostCopies::Absence* of : chosen) tensors.push_back(of->tensor);
  std::ranges::sort(tensors);
  return tensors;
}

// Chooses tensors to move to host memory: the largest first, without those for which no host memory
// is left. Returns them in ascending order of their numbers.
std::vector<int> StepPlanner::all_that_wait() const {
  std::vector<int> tensors;
  for (int tensor = 0; tensor < std::ssize(model_.copyable); ++tensor)
    if (model_.copyable[tensor] && model_.tensor_bytes[tensor] > 0) tensors.push_back(tensor);
  std::ranges::stable_sort(tensors, std::greater(), [&](int tensor) { return model_.tensor_bytes[tensor]; });
  std::int64_t space = link_.host_bytes;
  std::erase_if(tensors, [&](int tensor) {
    const bool fits = model_.tensor_bytes[tensor] <= space;
    if (fits) space -= model_.tensor_bytes[tensor];
    return !fits;
  });
  std::ranges::sort(tensors);
  return tensors;
}

// Returns the higher limits to try (step_planner.h). Each one exceeds `limit` by a fraction or a
// multiple of one of two numbers of bytes: those by which a step that keeps every tensor exceeds
// `limit`, and those that the link can copy to the host during forward. For large steps there are
// fewer limits.
std::vector<std::int64_t> StepPlanner::targets(std::int64_t limit) const {
  const double missing = static_cast<double>(most_ - limit);
  const double hidden = std::min(link_.overlaps ? forward_ms_ * link_.out_bytes_ms : 0, missing);
  const double more[] = {0.75 * hidden, 0.5 * hidden,  0.3 * missing, hidden,       1.5 * hidden,
                         0.6 * missing, 0.25 * hidden, missing,       0.1 * missing};
  const auto count = std::clamp<std::ptrdiff_t>(4500 / std::ssize(model_.operations), 1, std::ssize(more));
  std::set<std::int64_t> limits;
  for (std::ptrdiff_t i = 0; i < count; ++i)
    if (more[i] > 0) limits.insert(limit + static_cast<std::int64_t>(std::min(more[i], missing)));
  return {limits.begin(), limits.end()};
}

std::optional<StepPlan> StepPlanner::plan(std::int64_t limit, const std::vector<int>& away) const {
  std::int64_t largest = 0;
  for (const int tensor : away) largest = std::max(largest, model_.tensor_bytes[tensor]);
  std::optional<StepPlan> best;
  // Also try a plan that leaves space for one tensor that is being copied out and one that is being
  // copied back. Operations then need not wait for these copies.
  const bool many = std::ssize(model_.operations) > kManyOperations;
  for (const std::int64_t space : {std::int64_t{0}, 2 * largest}) {
    if (space > 0 && many) break;
    const std::optional<RecomputePlan> plan = planner(away).plan(limit - space);
    if (!plan) break;
    StepPlan result = with_copies(*plan, away, limit);
    if (result.live_bytes > limit || result.host_bytes > link_.host_bytes) continue;
    if (!best || result.more_ms < best->more_ms) best = std::move(result);
    if (largest == 0) break;
  }
  return best;
}

std::optional<StepPlan> StepPlanner::plan(std::int64_t limit) const {
  std::optional<StepPlan> best = plan(limit, {});
  if (link_.host_bytes <= 0 || limit >= most_) return best;
  std::set<std::vector<int>> tried{{}};
  const auto consider = [&](const std::vector<int>& away) {
    if (!tried.insert(away).second) return;
    std::optional<StepPlan> other = plan(limit, away);
    if (other && (!best || other->more_ms < best->more_ms)) best = std::move(other);
  };
  for (const std::int64_t target : targets(limit)) {
    // For a large step, planning for each limit would take too long. Choose the tensors for the
    // schedule that keeps every tensor.
    if (std::ssize(model_.operations) > kManyOperations) {
      consider(relieving(single_runs(model_), most_ - (target - limit)));
      continue;
    }
    const std::optional<RecomputePlan> higher = without_copies_.plan(target);
    consider(relieving((higher ? *higher : without_copies_.least()).schedule, limit));
  }
  if (!best) consider(all_that_wait());
  return best;
}

StepPlan StepPlanner::least() const {
  const RecomputePlan kept = without_copies_.least();
  StepPlan best = with_copies(kept, {}, kept.live_bytes);
  if (link_.host_bytes <= 0) return best;
  const std::vector<int> away = all_that_wait();
  const RecomputePlan plan = planner(away).least();
  if (StepPlan other = with_copies(plan, away, plan.live_bytes); other.live_bytes < best.live_bytes)
    best = std::move(other);
  return best;
}

}  // namespace convoy::partition
