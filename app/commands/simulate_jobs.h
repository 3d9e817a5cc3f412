// `convoy simulate --jobs`: simulates several jobs that share one device, under several policies.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "app/commands/partition.h"

namespace convoy::app {

// The title in --help above the flags of `convoy simulate --jobs`.
inline constexpr const char* kJobsGroup = "Jobs that share a device";

struct JobsSimulationFlags {
  std::string jobs, policy = "all", eviction = "partial";
  // If memory_limit is 0, the limit in the job file applies.
  std::int64_t memory_limit = 0, compute_engines = 1, window = 16, seed = 1;
  double time_limit = -1;  // negative: each policy has its default

  void add_to(CLI::App& verb);
};

// Simulates the jobs and prints the result. `verb` must be the command to which
// JobsSimulationFlags::add_to() added its flags. Throws UsageError if flags exclude each other, and
// std::runtime_error if a file cannot be simulated.
void simulate_jobs(const JobsSimulationFlags& flags, const OutputFlags& output, const CLI::App& verb);

}  // namespace convoy::app
