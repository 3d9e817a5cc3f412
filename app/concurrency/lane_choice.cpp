// Implements lane_choice.h. A candidate is a schedule: the lane of every instruction of a step and
// the order of the launches. Caution is a factor on the predicted slowdown of instructions that run
// at the same time (ListOptions).
#include "app/concurrency/lane_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "app/execute/lane_plan.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kExpectedEventMs = 1.5e-3;
// If only estimated times are known, another schedule replaces that of fixed_lanes() only if it
// promises at least this gain (0.03 is 3 % less time).
constexpr double kModelsGain = 0.03;
constexpr double kRounding = 1e-6;
constexpr std::size_t kMostPairs = 48;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Candidate {
  std::string name;
  LaneOrder lanes;
  PredictedSchedule prediction;
  ListOptions list = {};  // options of list_schedule(), if is_list
  bool is_list = false;
  double ms = std::numeric_limits<double>::infinity();  // measured time; infinity if not measured
};

// Returns the candidate with its critical instructions (urgent_ops()) marked as urgent.
Candidate with_urgency(const StepLoad& load, Candidate one) {
  one.name += ", urgent first";
  one.lanes.urgent = urgent_ops(load);
  return one;
}

Candidate list_candidate(const StepLoad& load, const InterferenceModel& interference,
                         const ListOptions& options) {
  LaneOrder lanes = list_schedule(load, interference, options);
  PredictedSchedule prediction = predict(load, interference, lanes, options.event_ms);
  const int used = lanes_of(load, lanes);
  std::string name = fmt::format("list, {} lane{}, caution {}", used, used == 1 ? "" : "s", options.caution);
  return {std::move(name), std::move(lanes), std::move(prediction), options, true};
}

// Returns different schedules to choose from. The first is that of fixed_lanes() with the default
// number of lanes, and the second has one lane. The others follow by their predicted times, the
// fastest first.
std::vector<Candidate> candidates_of(const Program& program, const StepLoad& load,
                                     const InterferenceModel& interference, double event_ms, int most_lanes) {
  std::vector<Candidate> all;
  const auto add_new = [&](Candidate one) {
    const auto same = [&](const Candidate& other) { return other.lanes == one.lanes; };
    if (std::ranges::none_of(all, same)) all.push_back(std::move(one));
  };
  const auto named = [&](std::string name, LaneOrder lanes) {
    PredictedSchedule prediction = predict(load, interference, lanes, event_ms);
    return Candidate{std::move(name), std::move(lanes), std::move(prediction)};
  };
  const std::vector<std::vector<int>> dependences = dependences_of(program);
  const auto fixed = [&](int lanes) {
    return named(fmt::format("fixed, {} lanes", lanes), fixed_lanes(program, dependences, lanes));
  };
  // Callers expect these two even if they are equal, as in a chain of operations.
  all = {fixed(std::min(kDefaultLanes, most_lanes)), named("one lane", one_lane(load))};
  for (const int lanes : {2, 4, 6, 8, 16})
    if (lanes <= most_lanes) add_new(fixed(lanes));
  for (const double caution : {1.0, 0.5, 0.0, 2.0})
    for (const int lanes : {2, 3, 4, 6, 8})
      if (lanes <= most_lanes) add_new(list_candidate(load, interference, {lanes, event_ms, caution, 0}));
  for (const char* const name :
       {"fixed, 3 lanes", "fixed, 8 lanes", "list, 4 lanes, caution 1", "list, 8 lanes, caution 0"})
    if (const auto found = std::ranges::find(all, name, &Candidate::name); found != all.end())
      add_new(with_urgency(load, *found));
  std::ranges::stable_sort(all.begin() + 2, all.end(), {},
                           [](const Candidate& one) { return one.prediction.ms; });
  return all;
}

// Describes the chosen candidate. `serial` is the candidate with one lane, for comparison.
LaneChoice choice_of(const StepLoad& load, const Candidate& chosen, const Candidate& serial) {
  LaneChoice choice;
  choice.schedule = chosen.name;
  choice.lane_count = lanes_of(load, chosen.lanes);
  choice.forks = chosen.prediction.forks;
  choice.predicted_ms = chosen.prediction.ms;
  choice.predicted_before_ms = serial.prediction.ms;
  choice.lanes = chosen.lanes;
  return choice;
}

// Returns the candidate with the best prediction. But it must be faster by at least kModelsGain
// than the first two candidates, which have the fixed lanes and one lane. Otherwise returns the
// better of these two.
const Candidate& promising(const std::vector<Candidate>& candidates) {
  const double fixed = candidates[0].prediction.ms, one = candidates[1].prediction.ms;
  const auto ms = [](const Candidate& candidate) { return candidate.prediction.ms; };
  const Candidate& best = *std::ranges::min_element(candidates, {}, ms);
  if (best.prediction.ms < (1 - kModelsGain) * std::min(fixed, one)) return best;
  return candidates[fixed < (1 - kRounding) * one ? 0 : 1];
}

// Measures pairs of instructions that run at the same time, the longest overlaps first. Takes the
// pairs from a list schedule with caution 0, in which many instructions start together.
void measure_pairs(const StepLoad& load, InterferenceModel& interference, double event_ms, int most_lanes,
                   StepTimer& timer, double budget_ms) {
  constexpr int kLanes = 4, kRuns = 4;  // runs of a pair: one warm-up and three that count
  const LaneOrder eager = list_schedule(load, interference, {std::min(kLanes, most_lanes), event_ms, 0, 0});
  std::vector<std::pair<int, int>> pairs;
  double ms = 0;
  for (const Overlap& overlap : overlaps(load, predict(load, interference, eager, event_ms))) {
    if (load.ops[at(overlap.a)].only_in_place || load.ops[at(overlap.b)].only_in_place) continue;
    ms += 2 * kRuns * (load.ops[at(overlap.a)].ms + load.ops[at(overlap.b)].ms);
    if (ms > budget_ms || pairs.size() == kMostPairs) break;
    pairs.emplace_back(overlap.a, overlap.b);
  }
  const std::vector<PairTime> times = timer.pairs(pairs);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto [a, b] = pairs[i];
    const double alone = load.ops[at(a)].ms + load.ops[at(b)].ms;
    interference.learn(a, b, alone - (times[i].serial_ms - times[i].together_ms));
  }
}

int shortest_op(const StepLoad& load) {
  int shortest = -1;
  for (int i = 0; i < std::ssize(load.ops); ++i) {
    const OpLoad& op = load.ops[at(i)];
    if (op.engine != Engine::compute || op.ms <= 0 || op.only_in_place) continue;
    if (shortest < 0 || op.ms < load.ops[at(shortest)].ms) shortest = i;
  }
  return shortest;
}

// Returns how many schedules can be timed before the deadline.
std::size_t affordable_schedules(const StepLoad& load, Clock::time_point deadline) {
  constexpr int kRuns = 5;  // timing a schedule takes at least this many steps
  const double left_ms = std::chrono::duration<double, std::milli>(deadline - Clock::now()).count();
  return static_cast<std::size_t>(std::max(left_ms / (kRuns * std::max(load.serial_ms(), 1e-3)), 0.0));
}

void time_candidates(std::vector<Candidate>& candidates, StepTimer& timer, Clock::time_point deadline) {
  std::vector<LaneOrder> schedules;
  for (const Candidate& candidate : candidates) schedules.push_back(candidate.lanes);
  const std::vector<double> ms = timer.schedules(schedules, deadline);
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].ms = ms[i];
}

// Times random variants of the best list schedule until the deadline, each with another
// ListOptions::seed. Returns the fastest of these variants and the candidates.
Candidate best_of_tries(const StepLoad& load, const InterferenceModel& interference,
                        const std::vector<Candidate>& candidates, StepTimer& timer,
                        Clock::time_point deadline) {
  constexpr std::size_t kAtOnce = 8;
  constexpr std::uint32_t kMostTries = 200;
  constexpr std::chrono::milliseconds kBatch{100};
  constexpr double kGain = 0.002;  // a smaller gain is noise
  const auto least = [](const std::vector<Candidate>& of) {
    return std::ranges::min_element(of, {}, &Candidate::ms);
  };
  Candidate best = *least(candidates);
  std::vector<Candidate> lists;
  std::ranges::copy_if(candidates, std::back_inserter(lists), &Candidate::is_list);
  if (lists.empty()) return best;
  ListOptions options = least(lists)->list;
  const bool urgent = !least(lists)->lanes.urgent.empty();
  double batch_ms = 0;
  while (options.seed < kMostTries && affordable_schedules(load, deadline) > kAtOnce &&
         Clock::now() + std::chrono::duration<double, std::milli>(batch_ms) < deadline) {
    const Clock::time_point start = Clock::now();
    std::vector<Candidate> batch{best};
    while (batch.size() < kAtOnce) {
      ++options.seed;
      Candidate changed = list_candidate(load, interference, options);
      batch.push_back(urgent ? with_urgency(load, std::move(changed)) : std::move(changed));
    }
    time_candidates(batch, timer, start + kBatch);
    const Candidate& fastest = *least(batch);
    const bool faster = fastest.ms < (1 - kGain) * batch[0].ms;
    best = faster ? fastest : batch[0];
    batch_ms = ms_since(start);
  }
  return best;
}

// Times both candidates alternately. Returns `best` if it is faster by more than the noise of
// measurements, else `fixed`.
Candidate steadily_faster(const Candidate& fixed, Candidate best, StepTimer& timer,
                          Clock::time_point deadline) {
  // A long step must gain more, because it is timed only a few times and on a device that is not
  // yet warm.
  constexpr double kLeastGain = 0.01, kLeastGainOfLong = 0.02, kLongMs = 3;
  std::vector<Candidate> both{fixed, std::move(best)};
  time_candidates(both, timer, deadline);
  const double least = both[0].ms < kLongMs ? kLeastGain : kLeastGainOfLong;
  return both[both[1].ms < (1 - least) * both[0].ms ? 1 : 0];
}

}  // namespace

LaneChoice choose_by_model(const Program& program, const ResourceTable& resources,
                           const DeviceThroughput& rates, int most_lanes) {
  const Clock::time_point start = Clock::now();
  const StepLoad load = make_step_load(program, estimated_op_ms(program, rates), resources, rates);
  const InterferenceModel interference(load.ops);
  const std::vector<Candidate> candidates =
      candidates_of(program, load, interference, kExpectedEventMs, most_lanes);
  LaneChoice choice = choice_of(load, promising(candidates), candidates[1]);
  choice.analysis_ms = ms_since(start);
  return choice;
}

LaneChoice choose_by_measurement(const Program& program, const ResourceTable& resources,
                                 const DeviceThroughput& rates, int most_lanes, StepTimer& timer,
                                 std::chrono::milliseconds budget) {
  constexpr double kPairsShare = 0.15;  // fraction of the budget for measuring pairs
  constexpr std::size_t kFewest = 3;    // if there is time for fewer schedules, none is timed
  constexpr double kLongestMs = 40;     // a longer step cannot be measured within the budget
  const Clock::time_point start = Clock::now(), deadline = start + budget;
  StepLoad load = make_step_load(program, estimated_op_ms(program, rates), resources, rates);
  const bool measurable = load.serial_ms() < kLongestMs;
  if (measurable) load = make_step_load(program, timer.op_ms(), resources, rates);
  InterferenceModel interference(load.ops);
  const int shortest = shortest_op(load);
  const double event_ms = !measurable || shortest < 0 ? kExpectedEventMs : timer.event_ms(shortest);
  if (measurable)
    measure_pairs(load, interference, event_ms, most_lanes, timer,
                  kPairsShare * static_cast<double>(budget.count()));
  std::vector<Candidate> candidates = candidates_of(program, load, interference, event_ms, most_lanes);
  const std::size_t affordable = affordable_schedules(load, deadline);
  LaneChoice choice;
  if (!measurable || affordable < kFewest) {  // take the fixed lanes, which suit most networks
    choice = choice_of(load, candidates[0], candidates[1]);
  } else {
    candidates.resize(std::min(candidates.size(), affordable));
    time_candidates(candidates, timer, Clock::now() + (deadline - Clock::now()) / 2);
    const Candidate best = steadily_faster(
        candidates[0], best_of_tries(load, interference, candidates, timer, deadline - budget / 6), timer,
        deadline);
    choice = choice_of(load, best, candidates[1]);
    choice.measured_ms = best.ms, choice.measured_before_ms = candidates[1].ms;
  }
  choice.source = measurable ? LaneChoice::Source::measured : LaneChoice::Source::model;
  choice.analysis_ms = ms_since(start);
  return choice;
}

}  // namespace convoy::app
