#include "app/sharing/turns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace convoy::app {
namespace {

// The assumed rate of copies between a device and host memory. The length of turns depends on it.
constexpr double kCopiedBytesPerMs = 40e6;
constexpr std::int64_t kMostStepsOfCopies = 256;
constexpr int kNoPriority = std::numeric_limits<int>::min();

}  // namespace

void Turns::add(const SharedJob& traits) {
  Job& job = jobs_.emplace_back();
  job.traits = traits;
  job.group = groups_++;
  job.last_active = Clock::now();
}

void Turns::end(int number) {
  Job& job = at(number);
  job.ended = true;
  urgent_ -= std::exchange(job.urgent, 0) + (std::exchange(job.expected, false) ? 1 : 0);
  // The job may have ended by an error at any point, so clear everything that it had begun.
  job.waiting.reset();
  job.inside = job.mid_step = false;
  if (alone_ == number) alone_ = -1;
}

void Turns::arrange(const Groups& groups) {
  for (Job& job : jobs_) job.group = groups_++;
  for (const std::vector<int>& group : groups)
    for (const int job : group) {
      for (const int other : group)
        if (memory_.conflict(job, other)) throw std::logic_error("jobs that run side by side share memory");
      at(job).group = at(group[0]).group;
    }
  turn_ = -1;
}

void Turns::wait(int number, Use use) {
  Job& job = at(number);
  // finished() is called once per step. So count a step here only at its first piece.
  if (use == Use::step && job.traits.holds_trainings() && !job.mid_step) ++urgent_, ++job.urgent;
  job.waiting = use;
}

void Turns::enter(int number, Use use) {
  at(number).waiting.reset();
  at(number).inside = true;
  if (use == Use::alone) alone_ = number;
}

void Turns::leave(int number, Use use, const DeviceGate::Piece& piece) {
  Job& job = at(number);
  if (use == Use::step) {
    job.mid_step = !piece.last;
    if (piece.ends_part) ++job.turn_steps;
  }
  if (alone_ == number) alone_ = -1;
  job.inside = false;
  job.last_active = Clock::now();
}

void Turns::expect_step(int number, bool soon) {
  Job& job = at(number);
  if (!job.traits.holds_trainings() || job.expected == soon) return;
  job.expected = soon;
  urgent_ += soon ? 1 : -1;
}

void Turns::finished(int number) {
  if (at(number).urgent > 0) --at(number).urgent, --urgent_;
}

bool Turns::any_service() const {
  return std::ranges::any_of(jobs_, [](const Job& job) { return job.traits.service && !job.ended; });
}

bool Turns::take_turns(int a, int b) const { return !serves(a) && !serves(b) && at(a).group != at(b).group; }

// Returns whether the job may pass its gate now. May begin the turn of the job's group.
bool Turns::admits(int number, Use use) {
  const Job& job = at(number);
  if (alone_ >= 0) return false;
  const auto waits_alone = [&](const Job& other) { return &other != &job && other.waiting == Use::alone; };
  const auto busy = [](const Job& other) { return other.inside || other.mid_step; };
  if (use == Use::alone) return std::ranges::none_of(jobs_, busy);
  // If another job waits to use the device alone, only steps that have begun may go on. They may go
  // on even while a service has work, which otherwise holds trainings back.
  if (std::ranges::any_of(jobs_, waits_alone)) return job.mid_step;
  for (int other = 0; other < jobs(); ++other)
    if (memory_.conflict(number, other) && busy(at(other))) return false;
  if (job.traits.service || use == Use::memory) return true;
  if (options_.hold && urgent_ > 0) return false;
  return job.mid_step || has_turn(number);
}

bool Turns::has_turn(int number) {
  if (left_out(number)) return false;
  if (turn_is_over()) {
    const int next = next_group();
    if (next != at(number).group) return false;
    turn_ = next;
    for (Job& job : jobs_) job.turn_steps = 0;
    turn_began_ = true;
  }
  return turn_ == at(number).group;
}

// Returns whether another group may have its turn. For that, no job of the current group may be in
// the middle of a step, and one of these must hold:
//   - A job of higher priority waits.
//   - A job of the same priority waits, and all jobs of the current group have done the steps of
//     their turn or are idle.
//   - All jobs of the current group are idle: they have launched nothing for SharingOptions::idle.
bool Turns::turn_is_over() {
  if (turn_ < 0) return true;
  int own = kNoPriority;
  for (int number = 0; number < jobs(); ++number) {
    const Job& job = at(number);
    if (!job.takes_turns() || left_out(number) || job.group != turn_) continue;
    own = std::max(own, job.traits.priority);
    if (job.inside || job.mid_step) return false;
  }
  const int highest = highest_waiting_priority(true);
  if (highest > own) return true;
  const Clock::time_point now = Clock::now();
  for (int number = 0; number < jobs(); ++number) {
    const Job& job = at(number);
    if (!job.takes_turns() || job.group != turn_ || left_out(number)) continue;
    if (highest == own && job.turn_steps >= steps_of_turn(number)) continue;
    const bool idle = copies_.in_flight(number) == 0 && !job.waiting && now - job.last_active > options_.idle;
    if (!idle) return false;
  }
  return true;
}

int Turns::highest_waiting_priority(bool other_groups) const {
  int highest = kNoPriority;
  for (int job = 0; job < jobs(); ++job)
    if (at(job).waits_for_step() && !left_out(job) && !(other_groups && at(job).group == turn_))
      highest = std::max(highest, at(job).traits.priority);
  return highest;
}

bool Turns::left_out(int job) const { return focus_ && std::ranges::find(*focus_, job) == focus_->end(); }

// Returns the group whose turn is next: the first group after the current one in which a job of the
// highest waiting priority waits. Returns -1 if no job waits.
int Turns::next_group() const {
  const int highest = highest_waiting_priority(false);
  int next = -1;
  for (int number = 0; number < jobs(); ++number) {
    const Job& job = at(number);
    if (!job.waits_for_step() || left_out(number) || job.traits.priority < highest) continue;
    if (next < 0 || distance(job.group) < distance(next)) next = job.group;
  }
  return next;
}

std::vector<int> Turns::take_next_jobs() {
  std::vector<int> jobs_of_next;
  if (!std::exchange(turn_began_, false)) return jobs_of_next;
  int next = -1;
  for (int number = 0; number < jobs(); ++number) {
    const Job& job = at(number);
    if (job.takes_turns() && memory_.placed(number) && job.group != turn_ && !left_out(number) &&
        (next < 0 || distance(job.group) < distance(next)))
      next = job.group;
  }
  for (int number = 0; number < jobs(); ++number)
    if (!at(number).ended && at(number).group == next && !at(number).inside && leaves_state_free(number))
      jobs_of_next.push_back(number);
  return jobs_of_next;
}

bool Turns::leaves_state_free(int number) const {
  for (int other = 0; other < jobs(); ++other) {
    const Job& its = at(other);
    if (other != number && memory_.overwrites(other, number) &&
        (its.group == turn_ || its.inside || its.mid_step))
      return false;
  }
  return true;
}

// A turn takes at least as long as the copies of states that it causes, so that the copies can run
// during the steps of other jobs. If the job overwrites another job's state, the copies cannot run
// during steps. Its turn then takes kExposed times as long as the copies, so that the copies take
// only a small part of the time. For that it never has more than kMostStepsOfCopies steps. Without
// prefetching a turn has one step.
std::int64_t Turns::steps_of_turn(int job) const {
  constexpr double kExposed = 8;
  if (!options_.prefetch) return 1;
  double ms = 0;
  for (int other = 0; other < jobs(); ++other) {
    if (other == job || at(other).ended) continue;
    const std::size_t bytes = memory_.state(other).size() + memory_.state(job).size();
    const double copies = 2 * static_cast<double>(bytes) / kCopiedBytesPerMs;
    if (memory_.overwrites(job, other))
      ms = std::max(ms, kExposed * copies);
    else if (memory_.overwrites(other, job))
      ms = std::max(ms, copies);
  }
  const double step_ms = at(job).step_ms > 0 ? at(job).step_ms : 10;
  const double steps = std::clamp<double>(std::ceil(ms / step_ms), 1, kMostStepsOfCopies);
  return std::llround(steps * at(job).turn_factor);
}

}  // namespace convoy::app
