// A device that several jobs of one process share. It gives every job a gate
// (execute/device_gate.h). The job's thread may pass the gate when the job may use the device and
// the job's state is in device memory.
//
// ReservedMemory places the memory of the jobs, Turns says which job may launch work, and
// StateCopies moves states between the device and host memory. This class calls all three under one
// lock, and makes threads wait at their gates. It also keeps the progress of the jobs.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/execute/device_gate.h"
#include "app/sharing/device_queue.h"
#include "app/sharing/reserved_memory.h"
#include "app/sharing/sharing_options.h"
#include "app/sharing/state_copies.h"
#include "app/sharing/turns.h"
#include "kernels/device/multiprocessors.h"

namespace convoy::app {

class SharedDevice {
 public:
  using Clock = Turns::Clock;
  using Groups = Turns::Groups;

  explicit SharedDevice(const SharingOptions& options);
  // Uses `queue` instead of a queue for options.backend.
  SharedDevice(const SharingOptions& options, std::unique_ptr<DeviceQueue> queue);
  ~SharedDevice();

  // Adds a job and returns its number. Jobs that start with others are placed in memory together,
  // when all of them have reserved memory.
  int add(const SharedJob& job, bool starts_with_others);
  // Returns the gate of a job, which only one thread may use. It lives as long as this object.
  DeviceGate& gate(int job);
  // Tells the device that the job has ended and its session is gone. Other jobs may then get its
  // memory.
  void end(int job);

  // Sets the groups of trainings. The trainings of a group run side by side, and the groups take
  // turns (turns.h). A job that is in no group gets a group of its own. Jobs of a group must not
  // share memory.
  void arrange(const Groups& groups);
  // Lets only the trainings `jobs` run, or all trainings if `jobs` has no value. Services always
  // run.
  void focus(std::optional<std::vector<int>> jobs);
  // Returns whether two jobs have memory in common. Both must have reserved memory.
  bool share_memory(int a, int b) const;
  // Returns whether memory is so short that states of jobs are moved to host memory.
  bool swaps() const;

  struct Progress {
    bool reserved = false, ended = false;
    std::int64_t steps = 0;              // finished steps of training
    std::int64_t evaluated_batches = 0;  // finished steps of tests
    Clock::time_point finished_at;       // when the last step of training finished
    Clock::time_point worked_until;      // when the last step of any kind finished, or the job ended
    std::int64_t swapped_bytes = 0;      // bytes of states that were copied out of the device and into it
  };
  Progress progress(int job) const;
  // Sets how long a step takes if the job runs alone. From this, steps_of_turn() computes turns
  // that are long compared with the copies of states.
  void set_step_ms(int job, double milliseconds);
  // Sets how many times as many steps a turn of the job has as it needs for these copies. All
  // factors become 1 when a job reserves memory. Without SharingOptions::prefetch they have no
  // effect.
  void set_turn_factor(int job, double factor);
  bool prefetches() const { return options_.prefetch; }
  // Returns the number of steps in a turn of the job.
  std::int64_t steps_of_turn(int job) const;
  std::int64_t memory_bytes() const;  // the bytes that are reserved for all jobs

 private:
  class Gate;
  struct Job {
    std::unique_ptr<Gate> gate;
    int depth = 0;  // how many calls of enter() are nested; only the job's thread uses it
    Progress progress;
  };
  using Lock = std::unique_lock<std::mutex>;

  MemoryPlace reserve(int job, const MemoryNeed& need);
  void enter(int job, DeviceGate::Use use, const DeviceGate::Piece& piece, kernels::Stream stream);
  void leave(int job, DeviceGate::Use use, const DeviceGate::Piece& piece, kernels::Stream stream) noexcept;
  void expect_step(int job, bool soon);
  void finished(int job, bool training);
  double longest_piece_ms(int job) const;
  void throttle(int job, Lock& lock);
  void prefetch_next();
  const Job& at(int job) const { return jobs_.at(static_cast<std::size_t>(job)); }
  Job& at(int job) { return jobs_.at(static_cast<std::size_t>(job)); }

  const SharingOptions options_;
  std::optional<kernels::DividedMultiprocessors> parts_;  // has a value if options_.multiprocessors > 0
  std::unique_ptr<DeviceQueue> queue_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ReservedMemory memory_;
  StateCopies copies_;
  Turns turns_;
  std::deque<Job> jobs_;
};

}  // namespace convoy::app
