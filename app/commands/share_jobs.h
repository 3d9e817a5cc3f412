// Reads the jobs of `convoy share` from a TOML file with one [[job]] table per job.
#pragma once

#include <string>
#include <vector>

#include "app/sharing/job.h"

namespace convoy::app {

// Returns the jobs of the file. A table has the keys "name", "kind", "priority" and "arrival", and
// the flags of the job's kind:
//   - train: the flags of `convoy train`, without --out
//   - evaluate: the flags of `convoy evaluate`
//   - predict: the keys of a prediction service (docs/sharing.md)
// Jobs without a name are called job1, job2 and so on. Throws UsageError that names file, job and
// key.
std::vector<JobSpec> read_job_file(const std::string& file);

}  // namespace convoy::app
