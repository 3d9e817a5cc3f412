// A device that several jobs of one process share. It gives every job a gate
// (execute/device_gate.h), and lets the job's thread through the gate when the job may use the
// device and its state is in device memory.
//
// ReservedMemory places the memory of the jobs, Turns says which job may launch work, and
// StateCopies moves states between the device and host memory. This class calls all three under one
// lock, and lets the threads wait. It keeps the progress of the jobs.
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

namespace convoy::app {

class SharedDevice {
 public:
  using Clock = Turns::Clock;
  using Groups = Turns::Groups;

  explicit SharedDevice(const SharingOptions& options);
  // Uses the queue instead of that of options.backend.
  SharedDevice(const SharingOptions& options, std::unique_ptr<DeviceQueue> queue);
  ~SharedDevice();

  // Adds a job and returns its number. With `starts_with_others`, its memory is placed together
  // with that of all other jobs that were added with it and have not reserved memory yet.
  int add(const SharedJob& job, bool starts_with_others);
  // Returns the gate of a job, which only one thread may use. It lives as long as this object.
  DeviceGate& gate(int job);
  // Tells that the job has ended and its session is gone. Its memory is free from now on.
  void end(int job);

  // Sets which trainings run side by side: those of a group. The groups take turns (turns.h). A job
  // that is in no group gets a group of its own. Jobs of a group must not share memory.
  void arrange(const Groups& groups);
  // Lets only these trainings run, or all trainings if there is no value. Services always run.
  void focus(std::optional<std::vector<int>> jobs);
  // Returns whether two jobs have memory in common. Both must have reserved memory.
  bool share_memory(int a, int b) const;
  // Returns whether memory is so short that states wait in host memory.
  bool swaps() const;

  struct Progress {
    bool reserved = false, ended = false;
    std::int64_t steps = 0;              // finished steps of training
    std::int64_t evaluated_batches = 0;  // finished steps of tests
    Clock::time_point finished_at;       // when the last step of training finished
    Clock::time_point worked_until;      // when the last step of any kind finished, or the job ended
    std::int64_t swapped_bytes = 0;      // copied out of the device and into it
  };
  Progress progress(int job) const;
  // Sets how long a step takes if the job runs alone. steps_of_turn() then makes turns so long that
  // copies of states take little of the time.
  void set_step_ms(int job, double milliseconds);
  // Returns how many steps a turn of the job has.
  std::int64_t steps_of_turn(int job) const;
  std::int64_t memory_bytes() const;  // the bytes that are reserved for all jobs

 private:
  class Gate;
  struct Job {
    std::unique_ptr<Gate> gate;
    int depth = 0;  // the nesting of enter(); only the job's thread uses it
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
  std::unique_ptr<DeviceQueue> queue_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ReservedMemory memory_;
  StateCopies copies_;
  Turns turns_;
  std::deque<Job> jobs_;
};

}  // namespace convoy::app
