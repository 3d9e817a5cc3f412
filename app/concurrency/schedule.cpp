// Implements schedule.h. A lane is a sequence of instructions that a GPU runs in order; several
// lanes run at the same time.
#include "app/concurrency/schedule.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/concurrency/concurrency_simulator.h"

namespace convoy::app {
namespace {

constexpr double kNever = -1;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::vector<std::vector<int>> followers_of(const std::vector<std::vector<int>>& waits) {
  std::vector<std::vector<int>> followers(waits.size());
  for (int i = 0; i < std::ssize(waits); ++i)
    for (const int of : waits[at(i)]) followers[at(of)].push_back(i);
  return followers;
}

// Returns for each instruction the time from its start to the end of the step, along the longest
// path of instructions that follow it.
std::vector<double> bottom_levels(const StepLoad& load, const std::vector<std::vector<int>>& followers) {
  std::vector<double> levels(load.ops.size(), 0);
  for (int i = static_cast<int>(std::ssize(levels)) - 1; i >= 0; --i) {
    for (const int follower : followers[at(i)]) levels[at(i)] = std::max(levels[at(i)], levels[at(follower)]);
    levels[at(i)] += load.ops[at(i)].ms;
  }
  return levels;
}

// Returns how many milliseconds after `now` an instruction can start in `lane`. It must wait until
// `event_ms` after the end of each instruction of `waits` that is in another lane.
double delay_of(const std::vector<int>& waits, const std::vector<int>& lane_of, int lane,
                const std::vector<double>& ends, double event_ms, double now) {
  double delay = 0;
  for (const int of : waits)
    if (lane_of[at(of)] != lane) delay = std::max(delay, ends[at(of)] + event_ms - now);
  return delay;
}

class ListScheduler {
 public:
  ListScheduler(const StepLoad& load, const InterferenceModel& interference, const ListOptions& options)
      : load_(load),
        options_(options),
        followers_(followers_of(load.waits)),
        levels_(bottom_levels(load, followers_)),
        simulator_(load, interference, options.caution),
        ends_(load.ops.size(), kNever),
        tails_(at(options.lanes), -1) {
    if (options.seed != 0) {
      std::mt19937 engine(options.seed);
      std::uniform_real_distribution<double> factor(1, 1.5);
      for (double& level : levels_) level *= factor(engine);
    }
    result_.lane.assign(load.ops.size(), 0);
    for (int i = 0; i < std::ssize(load.ops); ++i) {
      open_.push_back(static_cast<int>(std::ssize(load.waits[at(i)])));
      if (open_.back() == 0) ready_.emplace(key(i), i);
    }
  }

  LaneOrder run() {
    while (true) {
      while (start_one()) {
      }
      if (simulator_.idle()) break;
      for (const int ended : simulator_.advance()) {
        ends_[at(ended)] = simulator_.now();
        for (const int follower : followers_[at(ended)])
          if (--open_[at(follower)] == 0) ready_.emplace(key(follower), follower);
      }
    }
    return std::move(result_);
  }

 private:
  // The largest number of ready instructions that start_one() examines.
  static constexpr int kConsidered = 8;

  bool computes(int op) const { return load_.ops[at(op)].engine == Engine::compute; }
  bool takes_time(int op) const { return computes(op) && load_.ops[at(op)].ms > 0; }
  double key(int op) const {
    return takes_time(op) ? -levels_[at(op)] : -std::numeric_limits<double>::infinity();
  }

  // Starts the most urgent instruction that should start now. Returns false if there is none.
  bool start_one() {
    int considered = 0;
    for (auto it = ready_.begin(); it != ready_.end() && considered < kConsidered; ++it, ++considered) {
      const int op = it->second;
      const auto [lane, delay] = computes(op) ? best_lane(op) : std::pair(engine_lane(op), 0.0);
      if (lane < 0) return false;
      if (takes_time(op) && simulator_.computes() && !gains(op, delay)) continue;
      ready_.erase(it);
      result_.order.push_back(op);
      result_.lane[at(op)] = lane;
      if (computes(op)) tails_[at(lane)] = op;
      simulator_.start(op, delay);
      return true;
    }
    return false;
  }

  bool gains(int op, double delay) const {
    const double after = simulator_.end_ms() + load_.ops[at(op)].ms;
    return after - simulator_.end_ms(op, delay) > options_.event_ms;
  }

  // Returns the lane of copies to and from host memory, which is numbered after all lanes that
  // compute. plan_lanes() replaces it by one lane per direction.
  int engine_lane(int) const { return options_.lanes; }

  // Returns the idle lane in which the instruction can start earliest, and the delay until then.
  // Among equal lanes it returns the one that became idle last. The lane is -1 if none is idle.
  std::pair<int, double> best_lane(int op) const {
    std::pair<int, double> best{-1, 0};
    double best_end = 0;
    for (int lane = 0; lane < options_.lanes; ++lane) {
      const int tail = tails_[at(lane)];
      const double end = tail < 0 ? kNever : ends_[at(tail)];
      if (tail >= 0 && end == kNever) continue;  // the lane is not idle
      const double delay =
          delay_of(load_.waits[at(op)], result_.lane, lane, ends_, options_.event_ms, simulator_.now());
      if (best.first >= 0 && (delay > best.second || (delay == best.second && end <= best_end))) continue;
      best = {lane, delay}, best_end = end;
    }
    return best;
  }

  const StepLoad& load_;
  const ListOptions options_;
  const std::vector<std::vector<int>> followers_;
  std::vector<double> levels_;
  ConcurrencySimulator simulator_;
  std::vector<double> ends_;
  std::vector<int> tails_;  // for each lane: its latest instruction
  std::vector<int> open_;   // for each instruction: how many instructions it still waits for
  // The instructions that have nothing left to wait for, the most urgent one first.
  std::set<std::pair<double, int>> ready_;
  LaneOrder result_;
};

// Simulates the lanes of a schedule. Each lane runs its instructions one after the other.
class LaneSimulation {
 public:
  LaneSimulation(const StepLoad& load, const InterferenceModel& interference, const LaneOrder& lanes,
                 double event_ms)
      : load_(load),
        event_ms_(event_ms),
        waits_(load.waits),
        lane_of_(load.ops.size()),
        simulator_(load, interference),
        ends_(load.ops.size(), kNever) {
    result_.begin.assign(load.ops.size(), 0);
    for (const auto& [first, second] : lanes.holds) waits_[at(second)].push_back(first);
    for (const int i : lanes.order) {
      const Engine engine = load.ops[at(i)].engine;
      lane_of_[at(i)] = engine == Engine::compute ? lanes.lane[at(i)] : -1 - static_cast<int>(engine);
      queues_[lane_of_[at(i)]].push_back(i);
    }
  }

  PredictedSchedule run() {
    std::size_t ended = 0;
    while (true) {
      while (start_one()) {
      }
      if (simulator_.idle()) break;
      for (const int op : simulator_.advance()) {
        ends_[at(op)] = simulator_.now();
        queues_[lane_of_[at(op)]].pop_front();
        running_.erase(lane_of_[at(op)]);
        ++ended;
      }
    }
    if (ended < load_.ops.size())
      throw std::invalid_argument("lanes of a program wait for each other in a circle");
    result_.ms = simulator_.now();
    result_.end = std::move(ends_);
    return std::move(result_);
  }

 private:
  bool start_one() {
    for (const auto& [lane, queue] : queues_) {
      if (queue.empty() || running_.contains(lane)) continue;
      const int op = queue.front();
      const std::vector<int>& waits = waits_[at(op)];
      if (std::ranges::any_of(waits, [&](int of) { return ends_[at(of)] == kNever; })) continue;
      const OpLoad& load = load_.ops[at(op)];
      if (load.engine == Engine::compute && load.ms > 0 && simulator_.computes()) ++result_.forks;
      const double delay = delay_of(waits, lane_of_, lane, ends_, event_ms_, simulator_.now());
      result_.begin[at(op)] = simulator_.now() + delay;
      simulator_.start(op, delay);
      running_.insert(lane);
      return true;
    }
    return false;
  }

  const StepLoad& load_;
  const double event_ms_;
  std::vector<std::vector<int>> waits_;
  std::vector<int> lane_of_;
  ConcurrencySimulator simulator_;
  std::vector<double> ends_;
  std::map<int, std::deque<int>> queues_;  // for each lane: the instructions that have not ended
  std::set<int> running_;                  // lanes whose first instruction has started
  PredictedSchedule result_;
};

}  // namespace

PredictedSchedule predict(const StepLoad& load, const InterferenceModel& interference, const LaneOrder& lanes,
                          double event_ms) {
  return LaneSimulation(load, interference, lanes, event_ms).run();
}

std::vector<Overlap> overlaps(const StepLoad& load, const PredictedSchedule& prediction) {
  std::vector<int> order;  // the instructions that compute, by their begin
  for (int i = 0; i < std::ssize(load.ops); ++i)
    if (load.ops[at(i)].engine == Engine::compute && load.ops[at(i)].ms > 0) order.push_back(i);
  std::ranges::sort(order, {}, [&](int i) { return std::pair(prediction.begin[at(i)], i); });
  std::map<std::pair<int, int>, Overlap> sums;
  std::vector<int> open;
  for (const int i : order) {
    std::erase_if(open, [&](int other) { return prediction.end[at(other)] <= prediction.begin[at(i)]; });
    for (const int other : open) {
      const double ms = std::min(prediction.end[at(i)], prediction.end[at(other)]) - prediction.begin[at(i)];
      Overlap& sum = sums[std::minmax({load.ops[at(i)].likeness, load.ops[at(other)].likeness})];
      if (sum.a < 0) sum.a = other, sum.b = i;
      sum.ms += ms;
    }
    open.push_back(i);
  }
  std::vector<Overlap> result;
  for (const auto& [likeness, sum] : sums) result.push_back(sum);
  std::ranges::stable_sort(result, std::ranges::greater(), &Overlap::ms);
  return result;
}

LaneOrder list_schedule(const StepLoad& load, const InterferenceModel& interference,
                        const ListOptions& options) {
  return ListScheduler(load, interference, options).run();
}

std::vector<char> urgent_ops(const StepLoad& load) {
  constexpr double kShare = 0.9;
  const std::vector<double> to_end = bottom_levels(load, followers_of(load.waits));
  const double longest = to_end.empty() ? 0 : std::ranges::max(to_end);
  std::vector<double> from_begin(load.ops.size(), 0);  // longest path to each instruction
  std::vector<char> urgent;
  for (std::size_t i = 0; i < load.ops.size(); ++i) {
    for (const int of : load.waits[i])
      from_begin[i] = std::max(from_begin[i], from_begin[at(of)] + load.ops[at(of)].ms);
    urgent.push_back(from_begin[i] + to_end[i] >= kShare * longest ? 1 : 0);
  }
  return urgent;
}

LaneOrder one_lane(const StepLoad& load) {
  LaneOrder lanes;
  lanes.order.resize(load.ops.size());
  std::iota(lanes.order.begin(), lanes.order.end(), 0);
  lanes.lane.assign(load.ops.size(), 0);
  return lanes;
}

int lanes_of(const StepLoad& load, const LaneOrder& lanes) {
  int most = 0;
  for (std::size_t i = 0; i < load.ops.size(); ++i)
    if (load.ops[i].engine == Engine::compute) most = std::max(most, lanes.lane[i]);
  return most + 1;
}

}  // namespace convoy::app
