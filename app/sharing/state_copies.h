// Moves the states of jobs between a device and host memory, and orders the work of jobs that have
// memory in common. For every job it records where the state is, and in which order the last step
// used the state. It also has marks (DeviceQueue::Mark) of the job's copies and launched work. Jobs
// are identified by their number in `memory`. Do not use an object from several threads at once.
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

  // `least_group_bytes` is an argument of plan_copies().
  StateCopies(kernels::Backend backend, DeviceQueue& queue, const ReservedMemory& memory,
              std::int64_t least_group_bytes)
      : backend_(backend), queue_(queue), memory_(memory), least_group_bytes_(least_group_bytes) {}

  void add();
  // Tells that the job has a new session, whose inputs and state are zero at first.
  void begin_session(int job);
  // Waits for the job's copies and for its work. Ignores errors of the device.
  void wait_for(int job);

  // Starts to copy states of other jobs to host memory if they overlap the job's memory.
  void make_room(int job);
  // Starts to copy the job's state to the device if it is not there. Bytes that the job's last step
  // used first are copied first.
  void bring_state(int job);
  bool waits_in_host_memory(int job) const;
  std::int64_t copied_bytes(int job) const { return at(job).copied_bytes; }  // in both directions

  // Returns the marks that the job's next work must wait for. Marks for which it already waits may
  // be left out. The job must wait for:
  //   - the work and the copies to host memory of jobs that have memory in common with it
  //   - the work of jobs for which takes_turns_with() is true
  //   - the copies of its own state to the device, up to the last copy that holds a range of
  //     `first_used` (DeviceGate::Piece), or all of them if `first_used` is null
  std::vector<Mark> marks_before(int job, const std::function<bool(int other)>& takes_turns_with,
                                 const std::vector<MemoryRange>* first_used);
  // Tells that the job changes its state, so that the copy in host memory is old.
  void changes_state(int job) { at(job).host_is_old = true; }
  // Tells that the job has put a piece of a step on the stream, and marks the end of the piece.
  void launched(int job, kernels::Stream stream, const DeviceGate::Piece& piece);
  // Returns the number of launched pieces of the job that the device has not finished.
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
    // The parts for whose arrival the job's stream does not wait yet, in the order of their
    // arrival.
    std::deque<Arrival> arriving;
    // The ranges of the state that the last whole step used (`order`), and those that the current
    // step has used so far (`step`).
    std::vector<MemoryRange> order, step;
    std::deque<Mark> flight;
    // followed[other] is the mark `last` of job `other` for which this job's stream already waits.
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
