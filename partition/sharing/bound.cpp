#include "partition/sharing/bound.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "partition/sharing/johnson.h"

namespace convoy::partition::sharing {
namespace {

struct Operation {
  Nanoseconds head, time, tail;
};

// Returns the least makespan of one engine that may interrupt its work. An operation has a head,
// which is the earliest time of its start, and a tail, which is the time that must follow its end.
// Among the operations that can start, the engine always runs the one with the longest tail.
Nanoseconds preemptive_makespan(std::vector<Operation> operations) {
  std::sort(operations.begin(), operations.end(),
            [](const Operation& a, const Operation& b) { return a.head < b.head; });
  const auto shorter_tail = [](const Operation& a, const Operation& b) { return a.tail < b.tail; };
  std::priority_queue<Operation, std::vector<Operation>, decltype(shorter_tail)> open(shorter_tail);
  Nanoseconds now = 0, makespan = 0;
  for (std::size_t next = 0; next < operations.size() || !open.empty();) {
    if (open.empty()) now = std::max(now, operations[next].head);
    while (next < operations.size() && operations[next].head <= now) open.push(operations[next++]);
    Operation longest = open.top();
    open.pop();
    const Nanoseconds until = next < operations.size() ? operations[next].head : now + longest.time;
    const Nanoseconds done = std::min(longest.time, until - now);
    now += done;
    longest.time -= done;
    if (longest.time == 0)
      makespan = std::max(makespan, now + longest.tail);
    else
      open.push(longest);
  }
  return makespan;
}

}  // namespace

Bound::Bound(const Workload& workload)
    : workload_(workload),
      engines_(workload.device().compute_engines),
      least_copy_back_(std::numeric_limits<Nanoseconds>::max()) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> in, back;
  for (ClientIndex client = 0; client < workload.count(); ++client) {
    const Client& given = workload.client(client);
    in.emplace_back(engines_ * given.copy_in, workload.busy(client));
    back.emplace_back(workload.busy(client), engines_ * given.copy_back);
    least_copy_back_ = std::min(least_copy_back_, given.copy_back);
  }
  by_copy_in_ = johnson_order(in), by_copy_back_ = johnson_order(back);
}

Nanoseconds Bound::at_start() const {
  return std::max(one_engine_each(), of({}, std::vector<bool>(workload_.count(), false)));
}

Nanoseconds Bound::of(const RemainingWork& remaining, const std::vector<bool>& admitted) const {
  return std::max({copies_then_kernels(remaining, admitted), kernels_then_copies_back(remaining, admitted),
                   memory(remaining, admitted)});
}

// Returns the largest of the bounds for each engine alone. The compute engines count as a single
// engine that is `engines_` times as fast. Its times are in units of 1 ns / engines_, so they are
// whole numbers.
Nanoseconds Bound::one_engine_each() const {
  std::vector<Operation> in, compute, back;
  for (ClientIndex client = 0; client < workload_.count(); ++client) {
    const Client& given = workload_.client(client);
    const Nanoseconds span = workload_.busy(client) + workload_.idle(client);
    const Nanoseconds there = given.arrival + given.copy_in;
    in.push_back({given.arrival, given.copy_in, span + given.copy_back});
    compute.push_back({engines_ * there, workload_.busy(client), engines_ * given.copy_back});
    back.push_back({there + span, given.copy_back, 0});
  }
  const Nanoseconds computed = (preemptive_makespan(std::move(compute)) + engines_ - 1) / engines_;
  return std::max({preemptive_makespan(std::move(in)), computed, preemptive_makespan(std::move(back))});
}

Nanoseconds Bound::copies_then_kernels(const RemainingWork& remaining,
                                       const std::vector<bool>& admitted) const {
  Nanoseconds copied = remaining.now, last = 0, shortest = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds computed = engines_ * remaining.now + remaining.compute;
  for (const ClientIndex client : by_copy_in_) {
    if (admitted[client]) continue;
    const Client& given = workload_.client(client);
    const Nanoseconds after = workload_.busy(client) + workload_.idle(client) + given.copy_back;
    copied += given.copy_in;
    computed = std::max(computed, engines_ * copied) + workload_.busy(client);
    last = std::max(last, std::max(remaining.now, given.arrival) + given.copy_in + after);
    shortest = std::min(shortest, after);
  }
  // The client that is copied last still needs at least `shortest` after its copy, which is the
  // least that any client needs.
  if (last > 0) last = std::max(last, copied + shortest);
  return std::max(last, (computed + engines_ - 1) / engines_ + least_copy_back_);
}

// Returns a bound from kernels and the copies back after them. Of the clients that are already
// admitted, it counts only the copies back, as if these came first and waited for no kernel. This
// can only lower the result, so it remains a lower bound.
Nanoseconds Bound::kernels_then_copies_back(const RemainingWork& remaining,
                                            const std::vector<bool>& admitted) const {
  Nanoseconds shortest = std::numeric_limits<Nanoseconds>::max();
  for (const ClientIndex client : by_copy_back_)
    if (!admitted[client]) shortest = std::min(shortest, workload_.client(client).copy_in);
  Nanoseconds copied_back = engines_ * (remaining.now + remaining.copy_back);
  Nanoseconds computed = engines_ * remaining.now;
  if (shortest < std::numeric_limits<Nanoseconds>::max()) computed += engines_ * shortest;
  for (const ClientIndex client : by_copy_back_) {
    if (admitted[client]) continue;
    computed += workload_.busy(client);
    copied_back = std::max(copied_back, computed) + engines_ * workload_.client(client).copy_back;
  }
  return (copied_back + engines_ - 1) / engines_;
}

Nanoseconds Bound::memory(const RemainingWork& remaining, const std::vector<bool>& admitted) const {
  if (workload_.device().memory == kUnlimited) return 0;
  Nanoseconds one_by_one = remaining.now + remaining.large_hold;
  double area = 0;
  for (ClientIndex client = 0; client < workload_.count(); ++client) {
    if (admitted[client]) continue;
    const Client& given = workload_.client(client);
    const Nanoseconds hold = given.copy_in + workload_.busy(client) + given.copy_back;
    if (workload_.large(client)) one_by_one += hold;
    area += static_cast<double>(given.bytes) / static_cast<double>(workload_.device().memory) *
            static_cast<double>(hold);
  }
  constexpr double kRounding = 1 - 1e-12;  // keeps the sum below its exact value in spite of rounding
  return std::max(one_by_one, remaining.now + static_cast<Nanoseconds>(area * kRounding));
}

}  // namespace convoy::partition::sharing
