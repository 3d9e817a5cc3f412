// Decides where in a device's memory the parts (MemoryPart: inputs, state, scratch) of several jobs
// lie. If memory is short, parts of jobs that take turns overlap: their scratch memory is shared,
// and states wait in host memory while other jobs use their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/execute/device_gate.h"
#include "kernels/device/errors.h"

namespace convoy::app {

struct MappedJob {
  std::string name;
  MemoryNeed need;
  // Whether only jobs that stay, too, may use the job's memory, so that trainings never stop it.
  bool stays = false;
  // The first byte of each part in the device's memory. It is fixed if `placed`, else
  // place_jobs() sets it.
  std::int64_t offset[kMemoryParts] = {};
  bool placed = false;
};

// Says that a job does not fit into the memory, even if the other jobs share all that they may
// share.
struct DoesNotFit : kernels::OutOfMemory {
  DoesNotFit(const MappedJob& job, std::int64_t capacity);
  std::string job;  // its name
};

// Returns the bytes that all jobs need if nothing overlaps.
std::int64_t bytes_side_by_side(std::span<const MappedJob> jobs);

// Returns whether two jobs have bytes in common, so that they cannot run at the same time.
bool share_memory(const MappedJob& a, const MappedJob& b);
// Returns whether `other` uses bytes in which the state of `job` lies.
bool overwrites_state(const MappedJob& other, const MappedJob& job);

// Places the jobs that are not placed yet in `capacity` bytes. Every part starts at a multiple of
// kMapAlignment. Nothing overlaps if that is possible. Otherwise scratch memory overlaps first,
// then states, and those of jobs that follow each other last, because the next job's state is
// copied in while the current job runs. Jobs that stay share memory with each other only if not all
// jobs fit otherwise. Throws DoesNotFit; then no job has been placed.
inline constexpr std::int64_t kMapAlignment = 4096;
void place_jobs(std::int64_t capacity, std::span<MappedJob> jobs);

}  // namespace convoy::app
