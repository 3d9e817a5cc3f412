#include "app/commands/share_jobs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/commands/config_file.h"
#include "app/commands/evaluation_flags.h"
#include "app/commands/member_options.h"
#include "app/commands/train_flags.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/sharing/job_scheduler.h"

namespace convoy::app {
namespace {

// Adds the keys that every job has.
void add_job_keys(CLI::App& keys, JobSpec& job) {
  keys.add_option("--name", job.name)->check(not_empty());
  add_choice(keys, "--kind", job.kind, "");
  keys.add_option("--priority", job.priority)->check(whole_number(-1000, 1000));
  keys.add_option("--arrival", job.arrival)->check(number_in("[0, 1e9]"));
}

// Adds the keys of a prediction service, which are spelled as the flags of `convoy predict`.
void add_service_keys(CLI::App& keys, ServiceOptions& service) {
  const auto add = [&keys](const char* key, auto& value, const CLI::Validator& check) {
    keys.add_option(key, value)->check(check);
  };
  add("--checkpoint", service.checkpoint, not_empty());
  keys.add_flag("--ema", service.ema);
  add_choice(keys, "--backend", service.backend, "");
  add_choice(keys, "--precision", service.precision, "");
  add("--batch", service.batch, whole_number(1, 1 << 20));
  add("--threads", service.threads, whole_number(0, 4096));
  add("--top", service.top, whole_number(1, 1 << 24));
  add("--tuning-file", service.tuning_file, not_empty());
  add("--socket", service.socket, not_empty());
  add("--watch", service.watch, not_empty());
  add("--multiprocessors", service.multiprocessors, whole_number(0, 4096));
  add("--latency-goal", service.latency_goal_ms, number_in("(0, 1e9]"));
}

JobSpec job_of(const ConfigRow& row, const std::string& file, std::size_t number) {
  JobSpec job;
  job.name = fmt::format("job{}", number);
  CLI::App keys;
  add_job_keys(keys, job);
  ConfigRow flags;
  for (const auto& [key, values] : row) {
    if (keys.get_option_no_throw("--" + key) == nullptr)
      flags.emplace_back(key, values);
    else
      apply_values(keys, key, values, file);
  }
  const std::string source = fmt::format("{}: job {}", file, job.name);
  CLI::App verb;
  if (job.kind == JobKind::train)
    add_train_flags(verb, job.train);
  else if (job.kind == JobKind::evaluate)
    add_evaluate_flags(verb, job.evaluation);
  else
    add_service_keys(verb, job.service);
  for (const auto& [key, values] : flags) {
    if (key == "out" || key == "config")
      throw UsageError(
          fmt::format("{}: found the key {}, expected none: the folder of a job is --out/NAME", source, key));
    apply_values(verb, key, values, source);
  }
  job.train.out = job.name;  // checks of the flags need a folder; Job sets the real one
  if (job.kind == JobKind::evaluate) check_evaluated(job.evaluation);
  if (job.kind == JobKind::predict && job.service.checkpoint.empty())
    throw UsageError(fmt::format("{}: found no checkpoint, expected one", source));
  if (!job.train.members.empty()) job.members = member_options(job.train.members, job.train);
  return job;
}

}  // namespace

std::vector<JobSpec> read_job_file(const std::string& file) {
  try {
    std::vector<JobSpec> jobs;
    for (const ConfigRow& row : read_rows(file, "job")) jobs.push_back(job_of(row, file, jobs.size() + 1));
    check_jobs(jobs);
    return jobs;
  } catch (const CLI::ConfigError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace convoy::app
