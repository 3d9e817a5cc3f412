// Moves the states of jobs (MemoryPart::state) between a device and host memory, and orders the
// work of jobs that have memory in common. Keeps for every job where its state is, and marks
// (device_queue.h) of its copies and of the work that it has launched. Jobs are named by their
// number in `memory`. Do not use an object from several threads at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "app/sharing/device_queue.h"
#include "app/sharing/reserved_memory.h"

namespace convoy::app {

class StateCopies {
 public:
  using Mark = DeviceQueue::Mark;

  StateCopies(kernels::Backend backend, DeviceQueue& queue, const ReservedMemory& memory)
      : backend_(backend), queue_(queue), memory_(memory) {}

  void add();
  // Says that the job has a new session, whose inputs and state begin with zeros.
  void begin_session(int job);
  // Waits for the job's copies and for its work. Ignores errors of the device.
  void wait_for(int job);

  // Starts copying to host memory all states of other jobs that the job's memory overlaps.
  void make_room(int job);
  // If the job's state is not on the device, starts copying it there. The state of a new session is
  // filled with zeros instead.
  void bring_state(int job);
  bool waits_in_host_memory(int job) const;
  std::int64_t copied_bytes(int job) const { return at(job).copied_bytes; }  // in both directions

  // Returns the marks for which the job's next work must wait, without those for which its stream
  // waits already. They are marks of its own copy, of jobs that have memory in common with it, and
  // of jobs for which takes_turns_with() is true.
  std::vector<Mark> marks_before(int job, const std::function<bool(int other)>& takes_turns_with);
  // Sets a mark after the work that the job has put on the stream.
  void launched(int job, kernels::Stream stream);
  // Returns how many launched pieces of the job's steps the device has not finished.
  std::size_t in_flight(int job);

 private:
  struct Job {
    bool resident = false, fresh = true;
    Mark last, in, out;
    std::deque<Mark> flight;
    // For each other job: its mark for which this job's stream waits already.
    std::vector<Mark> followed;
    std::int64_t copied_bytes = 0;
  };

  void evict(int job);
  void clear(int job);
  std::vector<Mark> marks_of_conflicts(int job) const;
  const Job& at(int job) const { return jobs_.at(static_cast<std::size_t>(job)); }
  Job& at(int job) { return jobs_.at(static_cast<std::size_t>(job)); }

  const kernels::Backend backend_;
  DeviceQueue& queue_;
  const ReservedMemory& memory_;
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
