// Runs the candidates side by side, repairs what overflows, improves the best.
#include "partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <thread>

#include "partition/memory/live_cut.h"
#include "partition/memory/overflow.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exhaustive.h"
#include "partition/placement/pardnn.h"

namespace convoy::partition {
namespace {

constexpr std::array<std::pair<Algorithm, const char*>, 7> kNames = {{{Algorithm::kOneDevice, "one-device"},
                                                                      {Algorithm::kContiguous, "contiguous"},
                                                                      {Algorithm::kHeft, "heft"},
                                                                      {Algorithm::kEtf, "m-etf"},
                                                                      {Algorithm::kMetis, "metis"},
                                                                      {Algorithm::kParDnn, "pardnn"},
                                                                      {Algorithm::kImprove, "improve"}}};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Partitioner {
 public:
  Partitioner(const CostModel& cost, const PartitionOptions& options)
      : cost_(cost),
        options_(options),
        units_(cost.graph(), cost.device_count()),
        lower_bound_(makespan_lower_bound(cost)) {}

  PartitionResult run();

 private:
  struct Entry {
    Candidate candidate;
    Placement placement;
    Bytes overflow = 0;  // before repair
    std::string reason;
    bool proven = false;
  };

  Placement place(Algorithm algorithm) const;
  void choose_order(Entry& entry) const;
  void fit(Entry& entry, Effort effort) const;
  void try_hard(Entry& entry) const;
  Entry make(Algorithm algorithm) const;
  std::vector<Entry> make_all() const;
  bool at_bound(const Candidate& candidate) const {
    return candidate.fits && candidate.makespan <= lower_bound_;
  }
  Clock::time_point deadline() const;
  Nanoseconds one_device(const std::vector<Entry>& entries) const;
  Entry improved(const Entry& best, bool repaired, ImprovementCounts& counts) const;
  Entry better_start(const Entry& best, bool repaired) const;
  void try_all_placements(Entry& best) const;

  const CostModel& cost_;
  const PartitionOptions& options_;
  const Units units_;
  const Nanoseconds lower_bound_;
};

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
  const auto time = std::chrono::milliseconds(effort == Effort::kQuick ? 200 : 3000);
  OverflowResult repaired = fit_memory(cost_, units_, entry.placement, effort, Clock::now() + time);
  entry.candidate.fits = repaired.placement.has_value();
  if (!entry.candidate.fits) {
    entry.reason = std::move(repaired.reason), entry.proven = repaired.proven;
    return;
  }
  entry.placement = std::move(*repaired.placement);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
}

// From a placement that spreads what must be live, then from the given one, unless there is proof that none can fit.
void Partitioner::try_hard(Entry& entry) const {
  const LiveCut cut = find_live_cut(cost_);
  if (auto proof = live_certificate(cost_, cut)) {
    entry.reason = std::move(*proof), entry.proven = true;
    return;
  }
  Entry spread = entry;
  spread.placement = place_by_memory(cost_, units_, cut);
  choose_order(spread);
  fit(spread, Effort::kThorough);
  if (!spread.candidate.fits && !spread.proven) fit(entry, Effort::kThorough);
  if (!entry.candidate.fits) entry = std::move(spread);
}

Partitioner::Entry Partitioner::make(Algorithm algorithm) const {
  const Clock::time_point begin = Clock::now();
  Entry entry;
  entry.candidate.algorithm = algorithm;
  entry.placement = place(algorithm);
  choose_order(entry);
  fit(entry, Effort::kQuick);
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

Clock::time_point Partitioner::deadline() const {
  if (options_.move_limit != std::numeric_limits<std::int64_t>::max() && !options_.time_limit)
    return Clock::time_point::max();
  std::chrono::duration<double> time{0.5};
  constexpr std::int64_t kSmall = 20000;
  constexpr std::chrono::duration<double> kLongest{2.5};
  if (options_.time_limit)
    time = *options_.time_limit;
  else if (std::int64_t{cost_.graph().node_count()} + cost_.graph().edge_count() > kSmall)
    time = std::min<std::chrono::duration<double>>(0.3 * (Clock::now() - options_.began), kLongest);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

// HEFT with other weights for the transfers in its ranks: milliseconds, and on some graphs some per cent.
Partitioner::Entry Partitioner::better_start(const Entry& best, bool repaired) const {
  constexpr std::int64_t kLarge = 300'000;
  Entry start = best;
  if (std::int64_t{cost_.graph().node_count()} + cost_.graph().edge_count() > kLarge) return start;
  const auto consider = [&](Placement placement) {
    Entry entry;
    entry.placement = std::move(placement);
    choose_order(entry);
    if (entry.candidate.makespan >= start.candidate.makespan) return;
    fit(entry, Effort::kQuick);
    if (entry.candidate.fits && entry.candidate.makespan < start.candidate.makespan) start = std::move(entry);
  };
  for (const double weight : {0.5, 2.0}) consider(place_by_heft(cost_, units_, weight));
  // Where limits bind, what spreads the memory from the beginning may lose less than what was made to fit.
  if (repaired) consider(place_by_memory(cost_, units_, find_live_cut(cost_)));
  return start;
}

// A graph with few placements: list scheduling of each of them.
void Partitioner::try_all_placements(Entry& best) const {
  constexpr double kMostPlacements = 1 << 12;
  if (placement_count(units_, cost_.device_count()) > kMostPlacements) return;
  for_each_placement(cost_.graph(), units_, cost_.device_count(),
                     [&](const std::vector<DeviceIndex>& device_of) {
                       Placement placement{cost_.device_count(), device_of, {}};
                       Simulation simulation = simulate(cost_, placement);
                       const bool fits = memory_overflow(cost_.machine(), simulation) == 0;
                       if (!fits || (best.candidate.fits && simulation.makespan >= best.candidate.makespan))
                         return true;
                       placement.order = std::move(simulation.order);
                       best.placement = std::move(placement);
                       best.candidate.makespan = simulation.makespan;
                       best.candidate.fits = true;
                       return true;
                     });
}

Partitioner::Entry Partitioner::improved(const Entry& best, bool repaired, ImprovementCounts& counts) const {
  const Clock::time_point begin = Clock::now();
  ImprovementLimits limits;
  limits.deadline = deadline();
  limits.moves = options_.move_limit;
  // Within a hundred-thousandth of the bound there is nothing left to gain.
  limits.good_enough = lower_bound_ + lower_bound_ / 100'000;
  limits.seed = options_.seed;
  if (cost_.machine().limited())
    limits.accept = [&](const Placement& placement) {
      return memory_overflow(cost_.machine(), simulate(cost_, placement)) == 0;
    };
  Entry entry = better_start(best, repaired);
  entry.candidate.algorithm = Algorithm::kImprove;
  entry.placement = improve(cost_, units_, entry.placement, limits, &counts);
  entry.candidate.makespan = simulate(cost_, entry.placement, Detail::kTimes).makespan;
  try_all_placements(entry);
  entry.candidate.seconds = seconds_since(begin);
  return entry;
}

// Of the plain placement on one device, even where memory limits spread it.
Nanoseconds Partitioner::one_device(const std::vector<Entry>& entries) const {
  for (const Entry& entry : entries)
    if (entry.candidate.algorithm == Algorithm::kOneDevice && entry.overflow == 0)
      return entry.candidate.makespan;
  return simulate(cost_, place_on_one_device(cost_, units_), Detail::kTimes).makespan;
}

PartitionResult Partitioner::run() {
  PartitionResult result;
  result.lower_bound = lower_bound_;
  result.memory_floor = memory_floor(cost_, units_);
  std::vector<Entry> entries = make_all();
  const auto better = [](const Entry& a, const Entry& b) {
    return a.candidate.fits != b.candidate.fits ? a.candidate.fits
                                                : a.candidate.makespan < b.candidate.makespan;
  };
  // Nothing fits at the first try: try hard, from the placement whose memory is spread best.
  if (std::none_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.candidate.fits; })) {
    const auto less_over = [](const Entry& a, const Entry& b) { return a.overflow < b.overflow; };
    Entry& last = *std::min_element(entries.begin(), entries.end(), less_over);
    if (!last.proven) try_hard(last);
    result.reason = last.reason, result.proven = last.proven;
  }
  if (options_.algorithm == Algorithm::kImprove) {
    const Entry best = *std::min_element(entries.begin(), entries.end(), better);
    const bool repaired =
        std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.overflow > 0; });
    if (best.candidate.fits && !at_bound(best.candidate))
      entries.push_back(improved(best, repaired, result.improvement));
  }
  Entry& best = *std::min_element(entries.begin(), entries.end(), better);
  for (const Entry& entry : entries) result.candidates.push_back(entry.candidate);
  result.algorithm = best.candidate.algorithm;
  result.one_device = one_device(entries);

  if (!best.candidate.fits) return result;
  result.simulation = simulate(cost_, best.placement);
  result.placement = std::move(best.placement);
  return result;
}

}  // namespace

const char* algorithm_name(Algorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)].second; }

Algorithm algorithm_from(std::string_view name) {
  std::string known;
  for (const auto& [algorithm, its_name] : kNames) {
    if (name == its_name) return algorithm;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", its_name);
  }
  throw std::runtime_error(fmt::format("algorithm \"{}\", expected one of {}", name, known));
}

PartitionResult partition_graph(const CostModel& cost, const PartitionOptions& options) {
  return Partitioner(cost, options).run();
}

}  // namespace convoy::partition
