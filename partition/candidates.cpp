// Makes the candidates: one placement per algorithm. The nodes run in the algorithm's own order or
// in that of list scheduling (simulate(), simulator.h), whichever gives the shorter schedule. A
// candidate that exceeds the memory limits is repaired.
#include <algorithm>
#include <array>
#include <atomic>

#include "partition/memory/live_cut.h"
#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/pardnn.h"
#include "partition/run_on_threads.h"

namespace convoy::partition {
namespace {

// For each Algorithm, in order: the longest time that it took on graphs of 200,000 nodes and more,
// as a multiple of the time of contiguous placement. Both times contain the list scheduling that
// follows. That of kImprove is the time before and after the local search.
constexpr std::array kRelativeTimes = {1, 1, 5, 7, 40, 30, 6};
static_assert(kRelativeTimes.size() == static_cast<std::size_t>(Algorithm::kImprove) + 1);

}  // namespace

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

// Chooses the order of the nodes: the order that the algorithm made, if there is one and it gives a
// shorter schedule, and otherwise the order of list scheduling.
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

Clock::time_point Partitioner::deadline() const {
  // The longest time limit in seconds. A longer one is treated as none, because the deadline would
  // overflow.
  constexpr double kLongest = 1e9;
  if (!options_.time_limit || options_.time_limit->count() > kLongest) return Clock::time_point::max();
  return begin_ + std::chrono::duration_cast<Clock::duration>(*options_.time_limit);
}

std::chrono::nanoseconds Partitioner::left() const {
  if (deadline() == Clock::time_point::max()) return std::chrono::nanoseconds::max();
  return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline() - Clock::now()));
}

void Partitioner::fit(Entry& entry, Effort effort, std::chrono::nanoseconds most) const {
  if (!cost_.machine().limited()) return;
  entry.overflow = memory_overflow(cost_.machine(), simulate(cost_, entry.placement));
  entry.candidate.fits = entry.overflow == 0;
  if (entry.candidate.fits) return;
  OverflowResult repaired =
      fit_memory(cost_, units_, entry.placement, effort, std::min(most, left()), deadline());
  entry.candidate.fits = repaired.placement.has_value();
  if (!entry.candidate.fits) {
    entry.reason = std::move(repaired.reason), entry.proven = repaired.proven;
    return;
  }
  entry.placement = std::move(*repaired.placement);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
}

Partitioner::Entry Partitioner::make(Algorithm algorithm) const {
  const Clock::time_point begin = Clock::now();
  Entry entry;
  entry.candidate.algorithm = algorithm;
  entry.placement = place(algorithm);
  choose_order(entry);
  fit(entry, Effort::kQuick, std::min<std::chrono::nanoseconds>(std::chrono::milliseconds(200), left() / 8));
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

// Called if no candidate fits into memory. Looks for a proof that no placement fits. Without a
// proof it tries to repair several placements: those of several algorithms, one that spreads memory
// over the devices, and the candidate that exceeds the limits least. Even the returned placement
// may not fit.
Partitioner::Entry Partitioner::made_to_fit(const std::vector<Entry>& entries) const {
  const auto closer = [](const Entry& a, const Entry& b) { return a.overflow < b.overflow; };
  Entry closest = *std::min_element(entries.begin(), entries.end(), closer);
  const LiveCut cut = find_live_cut(cost_);
  if (const std::optional<std::string> proof = live_certificate(cost_, cut)) {
    closest.reason = *proof, closest.proven = true;
    return closest;
  }
  if (left().count() == 0) return closest;
  const Algorithm algorithm = closest.candidate.algorithm;
  const std::chrono::nanoseconds time = std::min(options_.repair_time, left());
  const auto search = [&](Entry& entry, std::chrono::nanoseconds most) {
    ImprovementLimits limits;
    limits.deadline = deadline();
    limits.work = most.count();  // a unit of work (work.h) takes about a nanosecond
    limits.fit_at_any_cost = true;
    // Stop at the first placement that fits.
    limits.good_enough = std::numeric_limits<Nanoseconds>::max();
    entry.placement = improve(cost_, units_, entry.placement, limits);
    const Simulation simulation = simulate(cost_, entry.placement);
    entry.candidate.makespan = simulation.makespan;
    entry.overflow = memory_overflow(cost_.machine(), simulation);
    entry.candidate.fits = entry.overflow == 0;
    entry.candidate.algorithm = algorithm;
    return entry.candidate.fits;
  };
  Entry whole, cut_least, spread;
  whole.placement = place(Algorithm::kHeft), cut_least.placement = place(Algorithm::kMetis);
  spread.placement = place_by_memory(cost_, units_, cut);
  for (Entry* entry : {&whole, &cut_least, &spread}) choose_order(*entry);
  if (const std::optional<Placement> repaired = repaired_to_tighter(time / 16)) {
    closest.placement = *repaired;
    closest.candidate.makespan = simulate(cost_, *repaired, Detail::kTimes).makespan;
    closest.candidate.fits = true;
    return closest;
  }
  for (Entry* entry : {&whole, &cut_least, &spread})
    if (search(*entry, entry == &spread ? time / 8 : time / 4)) return *entry;
  for (Entry* entry : {&spread, &closest}) {
    fit(*entry, Effort::kThorough, time / 8);
    entry->candidate.algorithm = algorithm;
    if (entry->candidate.fits || entry->proven) return *entry;
  }
  Entry& start = spread.overflow < closest.overflow ? spread : closest;
  search(start, time / 8);
  return start;
}

// Algorithms take a fraction of a second on small graphs. So there they may begin at any time
// before the time limit has passed.
bool Partitioner::takes_too_long(Algorithm algorithm) const {
  if (small()) return left().count() == 0;
  const std::chrono::duration<double> estimate(kRelativeTimes[static_cast<std::size_t>(algorithm)] *
                                               contiguous_seconds_);
  return options_.time_limit && estimate >= left();
}

std::vector<Partitioner::Entry> Partitioner::make_all() {
  std::vector<Algorithm> wanted = {options_.algorithm};
  // The threads make the candidates in this order and stop when one is as short as the lower bound.
  // The two cheap algorithms that often reach the bound come first. The slowest one is next, so
  // that no thread starts it last and finishes late.
  if (options_.algorithm == Algorithm::kImprove)
    wanted = {Algorithm::kEtf,    Algorithm::kHeft,       Algorithm::kMetis,
              Algorithm::kParDnn, Algorithm::kContiguous, Algorithm::kOneDevice};
  std::vector<std::optional<Entry>> made(wanted.size());
  std::atomic<bool> optimal{false};  // true when a candidate fits and reaches the lower bound
  const auto make_one = [&](std::size_t i) {
    made[i] = make(wanted[i]);
    if (at_bound(made[i]->candidate)) optimal = true;
  };
  // With a time limit, the fastest algorithm comes first. It ensures that there is a placement, and
  // its time says which of the others would take too long.
  const auto first = std::ranges::find(wanted, Algorithm::kContiguous);
  if (options_.time_limit && first != wanted.end()) {
    const Clock::time_point begin = Clock::now();
    make_one(static_cast<std::size_t>(first - wanted.begin()));
    contiguous_seconds_ = seconds_since(begin);
  }
  run_on_threads(wanted.size(), options_.threads, [&](std::size_t i) {
    const bool has_time = first == wanted.end() || !takes_too_long(wanted[i]);
    if (!optimal && !made[i] && has_time) make_one(i);
  });
  std::vector<Entry> entries;
  for (std::optional<Entry>& entry : made)
    if (entry) entries.push_back(std::move(*entry));
  return entries;
}

}  // namespace convoy::partition
