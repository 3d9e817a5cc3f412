// Moves the states of jobs between a device and host memory, and orders the work of jobs that have
// memory in common. Keeps for every job where its state is, and marks of its copies and of the work
// that it has launched, and in which order its last step used the state. A job is its number in
// `memory`. Not for several threads at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "app/sharing/copy_plan.h"
#include "app/sharing/device_queue.h"
#include "app/sharing/reserved_memory.h"

namespace convoy::app {

class StateCopies {
 public:
  using Mark = DeviceQueue::Mark;

  // `least_group_bytes`: see plan_copies().
  StateCopies(kernels::Backend backend, DeviceQueue& queue, const ReservedMemory& memory,
              std::int64_t least_group_bytes)
      : backend_(backend), queue_(queue), memory_(memory), least_group_bytes_(least_group_bytes) {}

  void add();
  // Says that the job has a new session, whose inputs and state begin with zeros.
  void begin_session(int job);
  // Waits for the job's copies and for its work. Ignores errors of the device.
  void wait_for(int job);

  // Starts copying to host memory all states of other jobs that the job's memory overlaps.
  void make_room(int job);
  // Begins to copy the job's state in if it is not on the device. What the job's last step used
  // first comes first.
  void bring_state(int job);
  bool waits_in_host_memory(int job) const;
  std::int64_t copied_bytes(int job) const { return at(job).copied_bytes; }  // in both directions

  // Returns the marks for which the job's next work must wait and for which it does not wait yet:
  // those of jobs with common memory, those of jobs for which takes_turns_with() is true, and those
  // of the copies that bring what the work uses (DeviceGate::Piece::first_used).
  std::vector<Mark> marks_before(int job, const std::function<bool(int other)>& takes_turns_with,
                                 const std::vector<MemoryRange>* first_used);
  // Tells that the job changes its state, so that the copy in host memory is old.
  void changes_state(int job) { at(job).host_is_old = true; }
  // Marks the end of the piece that the job has put on the stream.
  void launched(int job, kernels::Stream stream, const DeviceGate::Piece& piece);
  // Returns how many pieces of the job the device has not finished.
  std::size_t in_flight(int job);

 private:
  // A part of a state that is being copied to the device.
  struct Arrival {
    CopyGroup ranges;
    Mark mark;
  };
  struct Job {
    bool resident = false, fresh = true, host_is_old = true;
    Mark last, out;
    // The parts for which the job's stream does not wait yet, in the order of their arrival.
    std::deque<Arrival> arriving;
    // The ranges of the state that the last whole step used, and those of the step in work.
    std::vector<MemoryRange> order, step;
    std::deque<Mark> flight;
    // For each other job: its mark for which this job's stream waits already.
    std::vector<Mark> followed;
    std::int64_t copied_bytes = 0;
  };

  void evict(int job);
  void copy_in(int job, const std::vector<Mark>& after);
  Mark arrived(int job) const { return at(job).arriving.empty() ? nullptr : at(job).arriving.back().mark; }
  void clear(int job);
  std::vector<Mark> marks_of_conflicts(int job) const;
  const Job& at(int job) const { return jobs_.at(static_cast<std::size_t>(job)); }
  Job& at(int job) { return jobs_.at(static_cast<std::size_t>(job)); }

  const kernels::Backend backend_;
  DeviceQueue& queue_;
  const ReservedMemory& memory_;
  const std::int64_t least_group_bytes_;
  std::vector<Job> jobs_;
};

// Calls `body` and ignores its exceptions, which are errors of the device. The job that caused the
// error reports it when it waits for its step.
template <typename Body>
void unless_failed(const Body& body) {
  try {
    body();
  } catch (const std::exception&) {
  }
}

}  // namespace convoy::app
