// Reads the jobs of `convoy share` from a TOML file with one [[job]] table per job.
#pragma once

#include <string>
#include <vector>

#include "app/sharing/job.h"

namespace convoy::app {

// Keys of a table are "name", "kind", "priority" and "arrival", and the flags of the job's kind:
// those of `convoy train`, without --out, those of `convoy evaluate`, or those of a prediction
// service (docs/sharing.md). Jobs without a name are called job1, job2 and so on. Throws UsageError
// that names file, job and key.
std::vector<JobSpec> read_job_file(const std::string& file);

}  // namespace convoy::app
