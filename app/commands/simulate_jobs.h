// `convoy simulate --jobs`: several jobs on one device, by several policies.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "app/commands/partition.h"

namespace convoy::app {

inline constexpr const char* kJobsGroup = "Jobs that share a device";  // of flags, in --help

struct JobsSimulationFlags {
  std::string jobs, policy = "all", eviction = "partial";
  std::int64_t memory_limit = 0, compute_engines = 1, window = 16, seed = 1;  // memory_limit 0: the file's
  double time_limit = -1;                                                     // below 0: each policy's own

  void add_to(CLI::App& verb);
};

// `verb` has the flags above. Throws UsageError for flags that do not go together, and
// std::runtime_error for a file that cannot be simulated.
void simulate_jobs(const JobsSimulationFlags& flags, const OutputFlags& output, const CLI::App& verb);

}  // namespace convoy::app
