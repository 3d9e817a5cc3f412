// Reserves the device memory of all jobs of a device, and host memory for states that are not
// always on the device. A state is the part of a job's memory that outlives its steps
// (MemoryPart::state, execute/device_gate.h). This class records what memory each job needs, where
// its parts are, and which jobs have memory in common. Jobs are numbered in the order of add(). Do
// not use an object from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "app/execute/device_gate.h"
#include "app/sharing/memory_map.h"
#include "kernels/device/arena.h"
#include "kernels/device/kernel.h"

namespace convoy::app {

class ReservedMemory {
 public:
  // `limit` is the most bytes of device memory for all jobs together. 0 means all that is free.
  ReservedMemory(kernels::Backend backend, std::int64_t limit) : backend_(backend), limit_(limit) {}

  // Adds a job. Jobs that start with others are placed together, when all of them have requested
  // memory. `stays` is set for services. They share memory only with each other.
  void add(const std::string& name, bool stays, bool starts_with_others);
  // Asks for the memory of a job, and places all jobs that can be placed now. If the same job asks
  // again, for a smaller session, it keeps its memory. Throws std::logic_error if the second
  // session needs more memory.
  void ask(int job, const MemoryNeed& need);
  // Frees the memory of a job that has ended, and places jobs that wait for memory.
  void end(int job);

  bool placed(int job) const { return at(job).map.placed; }
  // Returns the error that kept the job from getting memory; null if there is none.
  std::exception_ptr failure(int job) const { return at(job).failure; }
  std::span<std::byte> part(int job, MemoryPart part) const;
  std::span<std::byte> state(int job) const { return part(job, MemoryPart::state); }
  // Returns the host memory for a job's state. It is null until another job gets memory in the
  // state's place on the device. Then it remains until this job ends.
  std::byte* host_state(int job) const { return at(job).host_state.data(); }

  int jobs() const { return static_cast<int>(jobs_.size()); }
  // Returns whether two jobs have memory in common, so that they cannot run at the same time.
  bool conflict(int a, int b) const {
    return conflicts_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] != 0;
  }
  // Returns whether `other` uses bytes that belong to the state of `job`.
  bool overwrites(int other, int job) const;
  bool states_overlap(int a, int b) const;
  bool any_state_waits() const;  // whether any job's memory overlaps another job's state
  std::int64_t bytes() const;    // reserved bytes of the device, for all jobs

 private:
  struct Job {
    MappedJob map;
    std::byte* base = nullptr;  // the offsets in `map` are relative to this address
    std::size_t arena = 0;
    bool starts_with_others = false, requested = false, ended = false;
    kernels::Arena host_state;
    std::exception_ptr failure;
  };

  void place_waiting();
  void reserve_first(const std::vector<Job*>& requested);
  void place(const std::vector<Job*>& requested);
  void place_alone(Job& job);
  void reserve_host_states();
  void find_conflicts();
  const Job& at(int job) const { return jobs_.at(static_cast<std::size_t>(job)); }
  Job& at(int job) { return jobs_.at(static_cast<std::size_t>(job)); }

  const kernels::Backend backend_;
  const std::int64_t limit_;
  std::deque<Job> jobs_;
  std::vector<std::vector<char>> conflicts_;
  std::deque<kernels::Arena> arenas_;  // arenas_[0] is for the jobs that start together
  bool placed_first_ = false;
};

}  // namespace convoy::app
