// Decides where the memory of several jobs lies in a device's memory. A job's memory has three
// parts (MemoryPart): inputs, state and scratch. If memory is short, parts of jobs that take turns
// overlap. Their scratch memory is then shared, and a job's state is kept in host memory while
// other jobs use its place on the device.
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
  // Set for services. They share memory only with each other. Jobs that share memory cannot run at
  // the same time, so a service never has to wait for a training.
  bool stays = false;
  // The offset of each part in the device's memory, in bytes. It is fixed if `placed` is set; else
  // place_jobs() sets it.
  std::int64_t offset[kMemoryParts] = {};
  bool placed = false;
};

// Says that a job does not fit into the memory, even if all jobs share as much memory as they may.
struct DoesNotFit : kernels::OutOfMemory {
  DoesNotFit(const MappedJob& job, std::int64_t capacity);
  std::string job;  // the name of the job
};

// Returns the bytes that all jobs need if nothing overlaps.
std::int64_t bytes_side_by_side(std::span<const MappedJob> jobs);

// Returns whether two jobs have bytes in common, so that they cannot run at the same time.
bool share_memory(const MappedJob& a, const MappedJob& b);
// Returns whether `other` uses bytes that belong to the state of `job`.
bool overwrites_state(const MappedJob& other, const MappedJob& job);

// Places the jobs that are not placed yet in `capacity` bytes. Every part starts at a multiple of
// kMapAlignment. Nothing overlaps if that is possible. Otherwise scratch memory overlaps first,
// then states. States of jobs that follow each other overlap last, because the next job's state is
// copied to the device while the current job runs. Services (MappedJob::stays) overlap each other
// only if the jobs do not fit otherwise. If a job does not fit, throws DoesNotFit and places none.
inline constexpr std::int64_t kMapAlignment = 4096;
void place_jobs(std::int64_t capacity, std::span<MappedJob> jobs);

}  // namespace convoy::app
