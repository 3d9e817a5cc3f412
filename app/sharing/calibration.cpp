#include "app/sharing/calibration.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {
namespace {

using Clock = SharedDevice::Clock;
using namespace std::chrono_literals;

// The first steps after a measurement begins do not count, because they were started while other
// jobs ran.
constexpr std::int64_t kFirstSteps = 4;
constexpr std::int64_t kSteps = 4;  // the fewest steps that are measured
constexpr auto kLeastTime = 150ms, kMostTime = 5000ms;
// Jobs run side by side only if this makes them faster by at least this factor. Smaller gains may
// be due to variation of the measurements.
constexpr double kLeastGain = 1.02;
// The number of floats in the checkpoint that is timed. It is so large that, as with a network's
// checkpoint, most of the time goes into fresh memory pages and into writing the file.
constexpr std::size_t kSavedFloats = std::size_t{16} << 20;

struct SavingTimes {
  double read_ms = 0, written_ms = 0;
};

// Times a checkpoint of `floats` values, which it writes to `path` and removes again. Reading from
// a device costs about as much as copying to memory that was not used before.
SavingTimes time_saving(const std::filesystem::path& path, std::size_t floats) {
  const auto ms_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  CheckpointState state;
  state.parameters.push_back({{"values", {static_cast<std::int64_t>(floats)}}, {}});
  state.parameters[0].values.resize(floats);
  SavingTimes times;
  Clock::time_point begin = Clock::now();
  const CheckpointState read = state;
  times.read_ms = ms_since(begin);
  begin = Clock::now();
  save_checkpoint(path, read);
  times.written_ms = ms_since(begin);
  std::error_code error;
  std::filesystem::remove(path, error);
  return times;
}

}  // namespace

SavingRates saving_rates(const std::filesystem::path& folder) {
  try {
    // The difference of two sizes leaves out what every file costs, such as waiting for the disk.
    constexpr std::size_t kFewFloats = kSavedFloats / 16;
    const SavingTimes little = time_saving(folder / ".rate.h5", kFewFloats),
                      much = time_saving(folder / ".rate.h5", kSavedFloats);
    constexpr auto kBytes = static_cast<double>((kSavedFloats - kFewFloats) * sizeof(float));
    // A delay of the small file must not make the difference too small.
    const auto rate = [](double less_ms, double more_ms) {
      return kBytes / std::max(more_ms - less_ms, more_ms / 4);
    };
    return {rate(little.read_ms, much.read_ms), rate(little.written_ms, much.written_ms)};
  } catch (const std::exception&) {
    return {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  }
}

std::map<int, double> Calibrator::measure(const std::vector<int>& set, std::chrono::milliseconds least_time) {
  device_.focus(set);
  struct Point {
    std::int64_t steps = 0;
    Clock::time_point time;
  };
  const auto now = [&](int job) {
    const SharedDevice::Progress progress = device_.progress(job);
    return Point{progress.steps, progress.finished_at};
  };
  std::map<int, std::int64_t> before;
  for (const int job : set) before[job] = now(job).steps;
  // Waits until every job of the set has ended or has finished `steps` more steps than in `since`,
  // but at least for the time `least`. Gives up after kMostTime + least_time.
  const auto wait = [&](const std::map<int, std::int64_t>& since, std::int64_t steps, auto least) {
    const Clock::time_point start = Clock::now();
    const auto done = [&](int job) { return now(job).steps >= since.at(job) + steps || ended(job); };
    while (!interrupted_() && Clock::now() - start < kMostTime + least_time &&
           (Clock::now() - start < least || !std::ranges::all_of(set, done)) &&
           !std::ranges::all_of(set, [&](int job) { return ended(job); }))
      std::this_thread::sleep_for(2ms);
  };
  wait(before, kFirstSteps, 0ms);
  std::map<int, Point> first;
  std::map<int, std::int64_t> since;
  for (const int job : set) first[job] = now(job), since[job] = first[job].steps;
  wait(since, kSteps, least_time);
  std::map<int, double> rates;
  for (const int job : set) {
    const Point last = now(job);
    const double ms = std::chrono::duration<double, std::milli>(last.time - first[job].time).count();
    rates[job] = ms > 0 ? static_cast<double>(last.steps - first[job].steps) / ms : 0;
  }
  device_.focus(std::nullopt);
  return rates;
}

// Divides the jobs into groups: puts each job into the first group in which no job shares memory
// with it.
SharedDevice::Groups Calibrator::groups_by_memory(const std::vector<int>& jobs) const {
  SharedDevice::Groups groups;
  for (const int job : jobs) {
    const auto fits = [&](const std::vector<int>& group) {
      return std::ranges::none_of(group, [&](int other) { return device_.share_memory(job, other); });
    };
    const auto found = std::ranges::find_if(groups, fits);
    if (found != groups.end())
      found->push_back(job);
    else
      groups.push_back({job});
  }
  return groups;
}

std::optional<Calibration> Calibrator::run(std::vector<CalibratedJob> jobs, SharePolicy policy) {
  std::erase_if(jobs, [&](const CalibratedJob& job) { return ended(job.number); });
  if (jobs.empty()) return std::nullopt;
  Calibration result;
  std::vector<int> numbers;
  for (const CalibratedJob& job : jobs) numbers.push_back(job.number);
  SharedDevice::Groups each;
  for (const int job : numbers) each.push_back({job}), device_.set_turn_factor(job, 1);
  device_.arrange(each);
  for (const int job : numbers) {
    const double rate = measure({job}, kLeastTime)[job];
    if (interrupted_()) return std::nullopt;
    result.alone_ms[job] = rate > 0 ? 1 / rate : 0;
    device_.set_step_ms(job, result.alone_ms[job]);
  }
  result.groups = each;
  if (policy != SharePolicy::turns) {
    const SharedDevice::Groups groups = groups_by_memory(numbers);
    device_.arrange(groups);
    result.groups.clear();
    for (const std::vector<int>& group : groups) {
      if (group.size() == 1) {
        result.groups.push_back(group);
        continue;
      }
      double gain = 0;
      for (const auto& [job, rate] : measured_[group] = measure(group, kLeastTime))
        gain += rate * result.alone_ms[job];
      result.gain = std::max(result.gain, gain);
      if (policy == SharePolicy::together || gain > kLeastGain)
        result.groups.push_back(group);
      else
        for (const int job : group) result.groups.push_back({job});
    }
    device_.arrange(result.groups);
  }
  if (interrupted_()) return std::nullopt;
  result.seconds_left = schedule(jobs, result);
  if (interrupted_()) return std::nullopt;
  return result;
}

// Measures the share of the time (0 to 1) in which the device computes if the jobs take turns. In
// the rest of the time it copies states between the turns.
double Calibrator::share_that_computes(const std::vector<CalibratedJob>& jobs, const Calibration& result) {
  std::vector<int> all;
  double most_ms = 0;
  for (const CalibratedJob& job : jobs) {
    if (ended(job.number)) continue;
    all.push_back(job.number);
    most_ms += static_cast<double>(device_.steps_of_turn(job.number)) * result.alone_ms.at(job.number);
  }
  // Measure for at least two rounds of turns, or for 10 s if that is less. Within two rounds, one
  // whole turn of every job lies inside the measured time.
  const auto least = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(2 * most_ms, 10e3)));
  double share = 0;
  for (const auto& [job, rate] : measure(all, std::max<std::chrono::milliseconds>(least, kLeastTime)))
    share += rate * result.alone_ms.at(job);
  return std::clamp(share, 0.05, 1.0);
}

// Returns how long the jobs of the group take if no other group has turns, as a GroupOfJobs
// (makespan.h). When a job ends, the remaining jobs become faster. So the function goes from the
// end of one job to the end of the next, and measures the rates of the jobs that remain each time.
GroupOfJobs Calibrator::work_of(std::vector<int> set, const std::vector<CalibratedJob>& jobs,
                                const Calibration& result) {
  GroupOfJobs group;
  group.priority = std::numeric_limits<int>::min(), group.turn = 1e-9;
  std::map<int, double> left;
  for (const int number : set) {
    const CalibratedJob& job = *std::ranges::find(jobs, number, &CalibratedJob::number);
    left[number] = steps_left(job);
    group.priority = std::max(group.priority, job.priority);
    group.turn =
        std::max(group.turn, static_cast<double>(device_.steps_of_turn(number)) * result.alone_ms.at(number));
  }
  double ms = 0;
  while (!set.empty() && !interrupted_()) {
    const std::map<int, double> rates = rates_of(set, result);
    // A job that finished no step while it was measured gets a tiny rate, so that the loop ends.
    const auto rate = [&](int job) { return std::max(rates.at(job), 1e-9); };
    double next = std::numeric_limits<double>::infinity();
    for (const int job : set) next = std::min(next, left[job] / rate(job));
    ms += next;
    for (const int job : set) left[job] -= next * rate(job);
    std::erase_if(set, [&](int number) {
      if (left[number] >= 0.5) return false;
      const PlannedWork& planned = std::ranges::find(jobs, number, &CalibratedJob::number)->planned;
      const auto bytes = static_cast<double>(planned.checkpoint_bytes);
      const double reading = bytes / saving_.read, writing = bytes / saving_.written;
      group.jobs.push_back(
          {ms, static_cast<double>(planned.checkpoints) * (reading + writing), reading, writing});
      return true;
    });
  }
  return group;
}

// Returns the work that the job has left, as a number of training steps. A batch of a test counts
// as PlannedWork::batch_steps training steps.
double Calibrator::steps_left(const CalibratedJob& job) const {
  const SharedDevice::Progress done = device_.progress(job.number);
  const double steps = static_cast<double>(job.planned.steps - done.steps);
  const double batches = static_cast<double>(job.planned.evaluated_batches - done.evaluated_batches);
  return std::max(0.0, steps) + job.planned.batch_steps * std::max(0.0, batches);
}

std::map<int, double> Calibrator::rates_of(const std::vector<int>& set, const Calibration& result) {
  if (set.size() == 1) return {{set[0], 1 / std::max(result.alone_ms.at(set[0]), 1e-9)}};
  const auto known = measured_.find(set);
  return known != measured_.end() ? known->second : measured_[set] = measure(set, kLeastTime);
}

// Sets in the device how long the turns are. Returns the seconds until the last of the jobs has
// ended.
double Calibrator::schedule(const std::vector<CalibratedJob>& jobs, const Calibration& result) {
  // The first call of work_of() measures sets of jobs, which takes time, and the jobs work on
  // meanwhile. The second call uses these measurements and counts the work that is left now.
  for (const std::vector<int>& group : result.groups) work_of(group, jobs, result);
  const double computing = device_.swaps() ? share_that_computes(jobs, result) : 1;
  std::vector<GroupOfJobs> groups;
  for (const std::vector<int>& group : result.groups) groups.push_back(work_of(group, jobs, result));
  if (device_.prefetches()) {
    const std::vector<double> factors = lengthen_turns(groups, computing);
    for (std::size_t i = 0; i < groups.size(); ++i)
      for (const int job : result.groups[i]) device_.set_turn_factor(job, factors[i]);
  }
  return makespan_ms(groups, computing) / 1000;
}

}  // namespace convoy::app
