// `convoy share`: runs several jobs on one device.
#include <fmt/format.h>

#include <memory>

#include "app/commands/commands.h"
#include "app/commands/share_jobs.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/sharing/job_scheduler.h"
#include "app/training/rank_setup.h"

namespace convoy::app {
namespace {

struct ShareFlags {
  ShareOptions options;
  std::string jobs, add, remove;
};

void share(const ShareFlags& flags) {
  if (!flags.add.empty() || !flags.remove.empty()) {
    if (!flags.jobs.empty())
      throw UsageError("--add and --remove go to a running convoy share, without JOBS");
    if (!flags.add.empty()) {
      read_job_file(flags.add);  // reports mistakes in this process
      request_jobs(flags.options.out, flags.add);
    }
    if (!flags.remove.empty()) request_removal(flags.options.out, flags.remove);
    return;
  }
  if (flags.jobs.empty()) throw UsageError("expected JOBS.toml, --add or --remove");
  std::vector<JobSpec> jobs = read_job_file(flags.jobs);
  const StopSignals signals;
  int status = 0;
  {
    comm::MpiEnvironment environment(std::chrono::seconds(0), device_of(common_options(jobs[0]).backend));
    if (environment.world().size() > 1)
      throw UsageError(fmt::format("found {} ranks, expected one: a process shares one device",
                                   environment.world().size()));
    signals.start_up_is_over();
    status = JobScheduler(
                 flags.options, std::move(jobs),
                 [](const std::filesystem::path& file) { return read_job_file(file.string()); }, environment,
                 signals)
                 .run();
  }
  if (status != 0) throw ExitStatus{status};
}

}  // namespace

void add_share_command(CLI::App& app) {
  auto flags = std::make_shared<ShareFlags>();
  ShareOptions& options = flags->options;
  CLI::App* verb = app.add_subcommand("share", "Run several jobs on one device");
  verb->option_defaults()->group("Jobs");
  verb->add_option("jobs", flags->jobs,
                   "a [[job]] table for each job, with the flags of convoy train as keys")
      ->check(not_empty())
      ->type_name("JOBS.toml");
  verb->add_option("--out", options.out, "folder of the jobs' folders")
      ->required()
      ->check(not_empty())
      ->type_name("DIR");
  verb->add_option("--add", flags->add, "give more jobs to the convoy share that runs in DIR")
      ->check(not_empty())
      ->type_name("JOBS.toml");
  verb->add_option("--remove", flags->remove, "stop this job of the convoy share that runs in DIR")
      ->check(not_empty())
      ->type_name("NAME");
  verb->option_defaults()->group("Device");
  add_choice(*verb, "--policy", options.policy,
             "which jobs run side by side: as measured, none, or all that fit into the memory");
  verb->add_option("--memory-limit", options.memory_limit, "device memory of all jobs; 0: what is free")
      ->transform(size_or_zero())
      ->type_name("SIZE");
  verb->add_option("--piece-ms", options.piece_ms, "longest piece of a training's step; 0: whole steps")
      ->capture_default_str()
      ->check(number_in("[0, 1e6]"))
      ->type_name("MS");
  verb->add_flag("!--no-prefetch", options.prefetch, "alternate step by step, copying states only on demand");
  verb->add_flag("!--no-hold", options.hold, "let trainings go on while a service has work");
  verb->add_option("--threads", options.threads, "of the process; 0: its share of the host's cores")
      ->capture_default_str()
      ->check(whole_number(0, 4096))
      ->type_name("N");
  verb->callback([flags] { share(*flags); });
}

}  // namespace convoy::app
