// The candidates: each algorithm's placement, in its own order or a list schedule's, made to fit the memory limits.
#include <atomic>
#include <exception>
#include <thread>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/pardnn.h"

namespace convoy::partition {

Placement Partitioner::place(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kOneDevice:
      return place_on_one_device(cost_, units_);
    case Algorithm::kContiguous:
      return place_contiguously(cost_, units_);
    case Algorithm::kHeft:
      return place_by_heft(cost_, units_);
    case Algorithm::kEtf:
      return place_by_etf(cost_, units_);
    case Algorithm::kMetis:
      return place_by_metis(cost_, units_);
    case Algorithm::kParDnn:
    case Algorithm::kImprove:
      break;
  }
  return place_by_pardnn(cost_, units_);
}

// An algorithm's own order or list scheduling, whichever is shorter; list scheduling when equal.
void Partitioner::choose_order(Entry& entry) const {
  Simulation by_list =
      simulate(cost_, {entry.placement.devices, entry.placement.device_of, {}}, Detail::kTimes);
  entry.candidate.makespan = by_list.makespan;
  if (!entry.placement.order.empty()) {
    const Nanoseconds own = simulate(cost_, entry.placement, Detail::kTimes).makespan;
    if (own < by_list.makespan) {
      entry.candidate.makespan = own;
      return;
    }
  }
  entry.placement.order = std::move(by_list.order);
}

void Partitioner::fit(Entry& entry, Effort effort) const {
  if (!cost_.machine().limited()) return;
  entry.overflow = memory_overflow(cost_.machine(), simulate(cost_, entry.placement));
  entry.candidate.fits = entry.overflow == 0;
  if (entry.candidate.fits) return;
  const std::chrono::nanoseconds time =
      effort == Effort::kQuick ? std::chrono::milliseconds(200) : options_.repair_time;
  OverflowResult repaired = fit_memory(cost_, units_, entry.placement, effort, time);
  entry.candidate.fits = repaired.placement.has_value();
  if (!entry.candidate.fits) {
    entry.reason = std::move(repaired.reason), entry.proven = repaired.proven;
    return;
  }
  entry.placement = std::move(*repaired.placement);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
}

// The same for every algorithm, so found once.
const Partitioner::Spread& Partitioner::spread() const {
  std::call_once(spread_once_, [&] {
    const LiveCut cut = find_live_cut(cost_);
    spread_.proof = live_certificate(cost_, cut);
    if (spread_.proof) return;
    spread_.entry.placement = place_by_memory(cost_, units_, cut);
    choose_order(spread_.entry);
    fit(spread_.entry, Effort::kThorough);
  });
  return spread_;
}

// From the placement that spreads what must be live, then from the given one, unless there is proof that none can fit.
void Partitioner::try_hard(Entry& entry) const {
  const Spread& known = spread();
  if (known.proof) {
    entry.reason = *known.proof, entry.proven = true;
    return;
  }
  if (!known.entry.candidate.fits && !known.entry.proven) fit(entry, Effort::kThorough);
  if (entry.candidate.fits) return;
  const Algorithm algorithm = entry.candidate.algorithm;
  entry = known.entry;
  entry.candidate.algorithm = algorithm;
}

Partitioner::Entry Partitioner::make(Algorithm algorithm) const {
  const Clock::time_point begin = Clock::now();
  Entry entry;
  entry.candidate.algorithm = algorithm;
  entry.placement = place(algorithm);
  choose_order(entry);
  fit(entry, Effort::kQuick);
  if (!entry.candidate.fits && !entry.proven) try_hard(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

std::vector<Partitioner::Entry> Partitioner::make_all() const {
  std::vector<Algorithm> wanted = {options_.algorithm};
  // First the two that are cheap and come close to the bound on graphs with much work to share, then the longest.
  if (options_.algorithm == Algorithm::kImprove)
    wanted = {Algorithm::kEtf,    Algorithm::kHeft,       Algorithm::kMetis,
              Algorithm::kParDnn, Algorithm::kContiguous, Algorithm::kOneDevice};
  std::vector<std::optional<Entry>> made(wanted.size());
  std::vector<std::exception_ptr> errors(wanted.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> optimal{false};  // something fits and is as short as the bound: nothing can be shorter
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size() && !optimal; i = next++) try {
        made[i] = make(wanted[i]);
        if (at_bound(made[i]->candidate)) optimal = true;
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  std::vector<std::jthread> helpers;
  for (unsigned thread = 1; thread < std::min<std::size_t>(options_.threads, wanted.size()); ++thread)
    helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  std::vector<Entry> entries;
  for (std::optional<Entry>& entry : made)
    if (entry) entries.push_back(std::move(*entry));
  return entries;
}

}  // namespace convoy::partition
