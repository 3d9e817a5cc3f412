// Decides which job may launch work. Records for every job whether it waits, launches, or is
// between two pieces of a step, and how many steps it has done in this turn. These rules hold:
//   - Trainings are divided into groups. The trainings of a group run side by side.
//   - The groups take turns. A turn is one step. It has several steps if states must be copied
//     between device and host memory (state_copies.h), or if the groups' turns were made longer.
//   - A training of higher priority goes before those of lower priority.
//   - Services answer requests. While one has work, no training begins a step or a piece of a step,
//     unless the service has multiprocessors of its own.
// Jobs are identified by their number in `memory`. Do not use an object from several threads at
// once.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/execute/device_gate.h"
#include "app/sharing/reserved_memory.h"
#include "app/sharing/sharing_options.h"
#include "app/sharing/state_copies.h"

namespace convoy::app {

class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  using Groups = std::vector<std::vector<int>>;
  using Use = DeviceGate::Use;

  Turns(const SharingOptions& options, const ReservedMemory& memory, StateCopies& copies)
      : options_(options), memory_(memory), copies_(copies) {}

  void add(const SharedJob& traits);
  void end(int job);
  // Sets the groups. A job that is in no group gets a group of its own. Throws std::logic_error if
  // jobs of a group share memory.
  void arrange(const Groups& groups);
  // Lets only the trainings `jobs` run, or all trainings if `jobs` has no value.
  void focus(std::optional<std::vector<int>> jobs) { focus_ = std::move(jobs); }
  void set_step_ms(int job, double milliseconds) { at(job).step_ms = milliseconds; }
  // Sets how many times as many steps a turn of the job has as it needs for the copies of states.
  // All factors become 1 when a job begins. Without prefetching they have no effect.
  void set_turn_factor(int job, double factor) { at(job).turn_factor = factor; }
  void begin_job() {
    for (Job& job : jobs_) job.turn_factor = 1;
  }
  std::int64_t steps_of_turn(int job) const;

  // To use the device, a job calls wait(), then admits() until that returns true, then enter(), and
  // finally leave().
  void wait(int job, Use use);
  bool admits(int job, Use use);
  void enter(int job, Use use);
  void leave(int job, Use use, const DeviceGate::Piece& piece);
  void expect_step(int job, bool soon);
  // Tells that the oldest launched step of the job has finished.
  void finished(int job);

  bool serves(int job) const { return at(job).traits.service; }
  bool any_service() const;
  // Returns whether both jobs are trainings and their groups differ.
  bool take_turns(int a, int b) const;
  // Returns the jobs whose turn comes next and whose states can be copied to the device now. A
  // state cannot be copied while current work uses its place on the device. Only the first call in
  // a turn returns jobs; later calls return none.
  std::vector<int> take_next_jobs();

 private:
  struct Job {
    SharedJob traits;
    bool ended = false;
    std::optional<Use> waiting;
    bool inside = false, mid_step = false;
    bool expected = false;  // whether a service will start a step soon
    int group = 0, urgent = 0;
    std::int64_t turn_steps = 0;
    double step_ms = 0, turn_factor = 1;
    Clock::time_point last_active{};
    bool takes_turns() const { return !ended && !traits.service; }
    bool waits_for_step() const { return takes_turns() && waiting == Use::step; }
  };

  bool has_turn(int job);
  bool turn_is_over();
  int highest_waiting_priority(bool other_groups) const;
  bool left_out(int job) const;
  int next_group() const;
  // Returns after how many turns `group` follows the current group.
  int distance(int group) const { return group > turn_ ? group - turn_ : group - turn_ + groups_; }
  bool leaves_state_free(int job) const;
  int jobs() const { return static_cast<int>(jobs_.size()); }
  const Job& at(int job) const { return jobs_.at(static_cast<std::size_t>(job)); }
  Job& at(int job) { return jobs_.at(static_cast<std::size_t>(job)); }

  const SharingOptions& options_;
  const ReservedMemory& memory_;
  StateCopies& copies_;
  std::vector<Job> jobs_;
  int alone_ = -1;  // the job that uses the device alone; -1 if there is none
  // The number of steps that are expected, wait or run. Only the steps of services for which
  // trainings wait (SharedJob::holds_trainings()) count.
  int urgent_ = 0;
  int turn_ = -1;  // the group whose turn it is; -1 before the first turn
  int groups_ = 0;
  bool turn_began_ = false;  // whether a turn has begun since the last call of take_next_jobs()
  std::optional<std::vector<int>> focus_;
};

}  // namespace convoy::app
