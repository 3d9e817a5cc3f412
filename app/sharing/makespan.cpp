#include "app/sharing/makespan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace convoy::app {
namespace {

struct RunningGroup {
  const GroupOfJobs* group;
  // Both are times that the group needs if it runs by itself, in milliseconds. `length` is for all
  // its steps, and `done` is for the steps done so far.
  double length = 0, done = 0;
  bool ended() const { return done >= length; }
};

struct End {
  double at = 0;  // milliseconds from now
  const GroupJob* job = nullptr;
};

// Returns when each job has done its steps. Only the groups of the highest priority run. Until one
// of them ends, each has a share of the time that is proportional to the length of its turn.
std::vector<End> ends_of_steps(std::span<const GroupOfJobs> groups, double computing) {
  std::vector<RunningGroup> running;
  for (const GroupOfJobs& group : groups) {
    RunningGroup& one = running.emplace_back(RunningGroup{&group});
    for (const GroupJob& job : group.jobs) one.length = std::max(one.length, job.steps_end);
  }
  std::vector<End> ends;
  for (const RunningGroup& one : running)
    if (one.ended())
      for (const GroupJob& job : one.group->jobs) ends.push_back({0, &job});
  double now = 0;
  for (;;) {
    std::erase_if(running, [](const RunningGroup& one) { return one.ended(); });
    if (running.empty()) return ends;
    int highest = std::numeric_limits<int>::min();
    for (const RunningGroup& one : running) highest = std::max(highest, one.group->priority);
    const auto runs = [&](const RunningGroup& one) { return one.group->priority == highest; };
    double round = 0, rounds = std::numeric_limits<double>::infinity();
    for (const RunningGroup& one : running) {
      if (!runs(one)) continue;
      round += one.group->turn;
      rounds = std::min(rounds, (one.length - one.done) / one.group->turn);
    }
    for (RunningGroup& one : running) {
      if (!runs(one)) continue;
      const double turn = one.group->turn;
      const bool ends_now = (one.length - one.done) / turn <= rounds;
      const double until = ends_now ? one.length : one.done + rounds * turn;
      for (const GroupJob& job : one.group->jobs)
        if (job.steps_end <= until && (job.steps_end > one.done || one.done == 0))
          ends.push_back({now + (job.steps_end - one.done) / turn * round / computing, &job});
      one.done = until;
    }
    now += rounds * round / computing;
  }
}

// Returns the job whose last checkpoint is written last, and when that is done. Jobs write in the
// order in which they have read their checkpoints.
End last_written(std::vector<End> ends) {
  for (End& end : ends) end.at += end.job->reading;
  std::ranges::stable_sort(ends, {}, &End::at);
  End last;
  for (const End& end : ends) last = {std::max(last.at, end.at) + end.job->writing, end.job};
  return last;
}

// Returns the group whose last checkpoint is written last.
std::size_t last_group(std::span<const GroupOfJobs> groups, std::span<const End> ends) {
  const GroupJob* const last = last_written({ends.begin(), ends.end()}).job;
  std::size_t group = 0;
  while (std::ranges::none_of(groups[group].jobs, [&](const GroupJob& job) { return &job == last; })) ++group;
  return group;
}

}  // namespace

std::vector<double> lengthen_turns(std::span<GroupOfJobs> groups, double computing) {
  // Turns are lengthened only if the last job then ends earlier by at least this factor.
  constexpr double kLeastGain = 1.01;
  // The steps of a job may end later by at most this factor.
  constexpr double kMostDelay = 1.25;
  constexpr double kMostTurn = 200;  // milliseconds of a lengthened turn
  constexpr int kAttempts = 64;
  std::vector<double> factors(groups.size(), 1), turns;
  const std::vector<End> equal = ends_of_steps(groups, computing);
  if (groups.size() < 2 || equal.empty()) return factors;
  std::map<const GroupJob*, double> latest;
  for (const End& end : equal) latest[end.job] = kMostDelay * end.at;
  for (const GroupOfJobs& group : groups) turns.push_back(group.turn);
  const auto set = [&](const std::vector<double>& by) {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].turn = by[i] * turns[i];
  };
  // A turn may be one step, and only whole steps can be added. So let all groups have turns of four
  // steps if one of them has longer turns.
  const double unit = std::ranges::max(turns) * 4 <= kMostTurn ? 4 : 1;
  std::vector<double> longer(groups.size(), unit);
  double best = makespan_ms(groups, computing) / kLeastGain;
  std::vector<End> ends = equal;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::size_t last = last_group(groups, ends);
    longer[last] += unit / 4;
    set(longer);
    ends = ends_of_steps(groups, computing);
    const auto delayed = [&](const End& end) { return end.at > latest[end.job]; };
    if (groups[last].turn > kMostTurn || std::ranges::any_of(ends, delayed)) break;
    if (const double makespan = makespan_ms(groups, computing); makespan < best)
      best = makespan, factors = longer;
  }
  set(factors);
  return factors;
}

double makespan_ms(std::span<const GroupOfJobs> groups, double computing) {
  std::vector<End> ends = ends_of_steps(groups, computing);
  std::ranges::sort(ends, {}, &End::at);
  if (ends.empty()) return 0;
  // A job that saves a checkpoint delays the end of all jobs only while no other job runs. So add
  // the time of only those checkpoints that the last job saves after the others have done their
  // steps.
  End& last = ends.back();
  const double before = ends.size() > 1 ? ends[ends.size() - 2].at : 0;
  if (last.at > 0) last.at += last.job->pauses * (1 - before / last.at);
  return last_written(std::move(ends)).at;
}

}  // namespace convoy::app
