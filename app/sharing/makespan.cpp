#include "app/sharing/makespan.h"

#include <algorithm>
#include <cmath>
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
    RunningGroup& one = running.emplace_back(&group);
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

double length_of(const GroupOfJobs& group) {
  double length = 0;
  for (const GroupJob& job : group.jobs) length = std::max(length, job.steps_end);
  return length;
}

// Returns how long after the group's last step its checkpoints are written.
double tail_of(const GroupOfJobs& group) {
  double tail = 0;
  for (const GroupJob& job : group.jobs)
    tail = std::max(tail, job.steps_end + job.closing - length_of(group));
  return tail;
}

// Lengthens the turns of each group of the lowest priority that would write checkpoints after the
// last step of all. It then ends earlier, by `part` of the time for these checkpoints. The other
// groups keep their turns.
void end_early(std::span<GroupOfJobs> groups, double part, double computing) {
  constexpr double kMostOfLate = 0.9;  // the other groups always get some of the time
  const int lowest = std::ranges::min_element(groups, {}, &GroupOfJobs::priority)->priority;
  std::vector<char> late(groups.size(), 0);
  for (bool found = true; std::exchange(found, false);) {
    const std::vector<End> ends = ends_of_steps(groups, computing);
    const double last = std::ranges::max_element(ends, {}, &End::at)->at;
    const auto ends_late = [&](const GroupOfJobs& group) {
      return std::ranges::any_of(ends, [&](const End& end) {
        const bool own =
            std::ranges::any_of(group.jobs, [&](const GroupJob& job) { return &job == end.job; });
        return own && end.at + end.job->closing > last;
      });
    };
    // The share of the time that a late group needs until it must end.
    const auto share = [&](const GroupOfJobs& group) {
      const double length = length_of(group) / computing;
      return length / std::max(last - part * tail_of(group), length);
    };
    double of_late = 0, rest = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].priority != lowest || length_of(groups[i]) == 0) continue;
      if (!late[i] && ends_late(groups[i])) late[i] = found = true;
      if (late[i])
        of_late += share(groups[i]);
      else
        rest += groups[i].turn;
    }
    if (!found || rest == 0) return;
    const double scale = std::min(1.0, kMostOfLate / of_late);
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (late[i]) groups[i].turn = scale * share(groups[i]) / (1 - scale * of_late) * rest;
  }
}

}  // namespace

std::vector<double> lengthen_turns(std::span<GroupOfJobs> groups, double computing) {
  constexpr double kMostDelay = 1.25;
  // A turn may be one step, and only whole steps can be added. So let all groups have turns of
  // several steps if some have longer turns than others.
  constexpr double kFiner = 4;
  std::vector<double> factors(groups.size(), 1), turns;
  if (groups.size() < 2) return factors;
  for (const GroupOfJobs& group : groups) turns.push_back(group.turn);
  const auto set = [&](const std::vector<double>& by) {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i].turn = by[i] * turns[i];
  };
  std::map<const GroupJob*, double> equal;
  for (const End& end : ends_of_steps(groups, computing)) equal[end.job] = end.at;
  double best = makespan_ms(groups, computing);
  for (const double part : {1.0, 0.75, 0.5, 0.25}) {
    set(std::vector<double>(groups.size(), 1));
    end_early(groups, part, computing);
    std::vector<double> longer;
    for (std::size_t i = 0; i < groups.size(); ++i)
      longer.push_back(std::max(1.0, std::round(kFiner * groups[i].turn / turns[i])));
    set(longer);
    const std::vector<End> ends = ends_of_steps(groups, computing);
    const auto delayed = [&](const End& end) { return end.at > kMostDelay * equal[end.job]; };
    const double makespan = makespan_ms(groups, computing);
    if (makespan >= best || std::ranges::any_of(ends, delayed)) continue;
    best = makespan;
    factors = std::move(longer);
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
  double makespan = 0;
  for (const End& end : ends) makespan = std::max(makespan, end.at + end.job->closing);
  return makespan;
}

}  // namespace convoy::app
