// A device that several jobs of one process share. It reserves the memory of all jobs once, says
// which job may launch work, and moves the states of jobs between the device and host memory.
//
// The jobs are divided into groups. The jobs of a group run side by side, and the groups take
// turns, step by step, or for several steps if states must be copied. A job of higher priority goes
// before jobs of lower priority. Services answer requests: while one has work, no training launches
// more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/execute/device_gate.h"
#include "app/sharing/device_queue.h"
#include "app/sharing/memory_map.h"
#include "kernels/device/arena.h"

namespace convoy::app {

struct SharedJob {
  std::string name;
  int priority = 0;      // higher goes first
  bool service = false;  // answers requests, so it may run at any time
};

struct SharingOptions {
  kernels::Backend backend = kernels::Backend::cpu;
  std::int64_t memory_limit = 0;  // most bytes of the device for all jobs; 0: what is free
  double longest_piece_ms = 2;    // the longest piece of a training's step
  bool prefetch = true;           // copies the next job's state in while the current job computes
  bool hold = true;               // trainings wait while a service has work
  // A group whose jobs launch nothing for so long loses its turn.
  std::chrono::milliseconds idle{2};
};

class SharedDevice {
 public:
  using Clock = std::chrono::steady_clock;
  using Groups = std::vector<std::vector<int>>;

  explicit SharedDevice(const SharingOptions& options);
  ~SharedDevice();

  // Adds a job and returns its number. If `starts_with_others`, its memory is placed together with
  // that of all jobs that were added so and have not reserved theirs yet.
  int add(const SharedJob& job, bool starts_with_others);
  // The gate of a job, for one thread. It lives as long as this object.
  DeviceGate& gate(int job);
  // Tells that the job has ended and its session is gone. Its memory is free from now on.
  void end(int job);

  // Sets which trainings run side by side. Jobs that are not named are groups of their own. Jobs of
  // a group must not share memory.
  void arrange(const Groups& groups);
  // Lets only these trainings run; all run if there is no value. Services always run.
  void focus(std::optional<std::vector<int>> jobs);
  // Whether two jobs have memory in common. They must have reserved theirs.
  bool share_memory(int a, int b) const;
  // Whether the memory is so short that states wait in host memory.
  bool swaps() const;

  struct Progress {
    bool reserved = false, ended = false;
    std::int64_t steps = 0;              // finished steps of training
    std::int64_t evaluated_batches = 0;  // finished steps of tests
    Clock::time_point finished_at;       // when the last step of training finished
    Clock::time_point worked_until;      // when the last step of any kind finished
    std::int64_t swapped_bytes = 0;      // copied out of the device and into it
  };
  Progress progress(int job) const;
  // Sets how long a step takes if the job runs alone. Turns are then as long as the copies of
  // states need.
  void set_step_ms(int job, double milliseconds);
  // Returns how many steps a turn of the job has.
  std::int64_t steps_of_turn(int job) const;
  std::int64_t memory_bytes() const;  // the bytes that are reserved for all jobs

 private:
  class Gate;
  struct Job;
  using Lock = std::unique_lock<std::mutex>;

  MemoryPlace reserve(int job, const MemoryNeed& need);
  void place_waiting();
  void reserve_first(const std::vector<Job*>& asked);
  void place(const std::vector<Job*>& asked);
  bool overwrites(std::size_t other, std::size_t job) const;
  bool states_overlap(std::size_t a, std::size_t b) const;
  std::size_t index_of(const Job& job) const;
  void find_conflicts();

  void enter(int job, DeviceGate::Use use, kernels::Stream stream);
  void leave(int job, DeviceGate::Use use, const DeviceGate::Piece& piece, kernels::Stream stream) noexcept;
  void expect_step(int job, bool soon);
  void finished(int job, bool training);
  void throttle(Job& job, Lock& lock);
  void forget_reached(Job& job);
  bool admits(int job, DeviceGate::Use use);
  bool has_turn(const Job& job);
  bool turn_is_over();
  bool left_out(const Job& job) const;
  int next_group() const;
  // How many groups lie between the current one and this one, in the order of their turns.
  int distance(int group) const { return group > turn_ ? group - turn_ : group - turn_ + groups_; }
  void start_turn(int group);
  void prefetch_next();
  std::int64_t steps_of_turn(const Job& job) const;

  void evict(std::size_t job);
  void evict_for(int job, bool only_state);
  void bring_state(int job);
  std::vector<DeviceQueue::Mark> marks_of_conflicts(int job) const;
  std::vector<DeviceQueue::Mark> marks_before(int job);
  bool conflict(int a, int b) const {
    return conflicts_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] != 0;
  }
  Job& at(int job) const { return *jobs_.at(static_cast<std::size_t>(job)); }

  const SharingOptions options_;
  std::unique_ptr<DeviceQueue> queue_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::vector<char>> conflicts_;  // whether two jobs share memory
  std::deque<kernels::Arena> arenas_;         // the first is that of the jobs that start together
  bool placed_first_ = false;
  int alone_ = -1;  // the job that uses the device alone; -1 if there is none
  int urgent_ = 0;  // the steps of services that are expected, wait or run
  int turn_ = -1;   // the group whose turn it is; -1 before the first turn
  int groups_ = 0;
  bool turn_began_ = false;  // whether the next states have not been fetched in this turn
  std::optional<std::vector<int>> focus_;
};

}  // namespace convoy::app
