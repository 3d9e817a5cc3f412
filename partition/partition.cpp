// The partitioner. It makes candidates, improves them and returns the best placement that fits.
#include "partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "partition/partitioner.h"
#include "partition/placement/baselines.h"
#include "partition/placement/exact_schedule.h"

namespace convoy::partition {
namespace {

constexpr std::array<std::pair<Algorithm, const char*>, 7> kNames = {{{Algorithm::kOneDevice, "one-device"},
                                                                      {Algorithm::kContiguous, "contiguous"},
                                                                      {Algorithm::kHeft, "heft"},
                                                                      {Algorithm::kEtf, "m-etf"},
                                                                      {Algorithm::kMetis, "metis"},
                                                                      {Algorithm::kParDnn, "pardnn"},
                                                                      {Algorithm::kImprove, "improve"}}};

}  // namespace

// Returns the makespan if one device runs all nodes, even if its memory limit forbids that. Returns
// nothing if nodes are pinned to several devices.
std::optional<Nanoseconds> Partitioner::one_device(const std::vector<Entry>& entries) const {
  for (const Entry& entry : entries)
    if (entry.candidate.algorithm == Algorithm::kOneDevice && entry.overflow == 0 &&
        is_on_one_device(entry.placement))
      return entry.candidate.makespan;
  return one_device_time(cost_, units_);
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
  const auto best_of = [&] { return std::min_element(entries.begin(), entries.end(), better); };
  bool complete = false;  // true if the exact search has examined all schedules
  const auto proof =
      std::find_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.proven; });
  if (proof == entries.end() && options_.algorithm == Algorithm::kImprove &&
      !at_bound(best_of()->candidate) && small_enough(cost_.graph(), cost_.device_count())) {
    entries.push_back(searched_exactly(best_of()->candidate, complete));
    result.complete_search = complete ? CompleteSearch::kDone : CompleteSearch::kGaveUp;
  }
  if (proof == entries.end() && !best_of()->candidate.fits && !complete)
    entries.push_back(made_to_fit(entries));
  if (!best_of()->candidate.fits) {
    // If nothing fits, report a proof of this. Without a proof, report the attempt closest to the
    // limits.
    const auto says_more = [](const Entry& a, const Entry& b) {
      return a.proven != b.proven ? a.proven : a.overflow < b.overflow;
    };
    const Entry& last = *std::min_element(entries.begin(), entries.end(), says_more);
    result.reason = last.reason, result.proven = last.proven;
  }
  if (options_.algorithm == Algorithm::kImprove && best_of()->candidate.fits &&
      !at_bound(best_of()->candidate) && !complete && !takes_too_long(Algorithm::kImprove))
    entries.push_back(cost_.machine().limited() && (small() || any_repaired(entries))
                          ? improved_under_limits(entries, result.improvement)
                          : improved(entries, result.improvement));
  Entry& best = *best_of();
  for (const Entry& entry : entries) result.candidates.push_back(entry.candidate);
  result.algorithm = best.candidate.algorithm;
  result.one_device = one_device(entries);
  if (!best.candidate.fits) return result;
  result.optimal = complete || at_bound(best.candidate);
  result.simulation = simulate(cost_, best.placement);
  result.placement = std::move(best.placement);
  return result;
}

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
