#include "app/sharing/job_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "app/errors.h"
#include "app/json_text.h"
#include "app/sharing/job_log.h"
#include "app/training/rank_setup.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool is_folder_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && name.front() != '.' && name != Inbox::kFolder && name != Inbox::kReport &&
         std::ranges::all_of(name, plain);
}

nlohmann::json json_of(const Job& job, const SharedDevice::Progress& progress) {
  nlohmann::json object{{"name", job.spec().name},
                        {"kind", name_of(job.spec().kind)},
                        {"status", name_of(job.status())},
                        {"steps", progress.steps},
                        {"swapped_bytes", progress.swapped_bytes}};
  if (!job.message().empty()) object["message"] = job.message();
  return object;
}

// Returns the number of multiprocessors that the job asks for; 0 if none of its own.
int multiprocessors_of(const JobSpec& job) {
  return job.kind == JobKind::predict ? static_cast<int>(job.service.multiprocessors) : 0;
}

// Throws UsageError if the job asks for multiprocessors of its own, but not on a GPU or not
// `divided` of them. `divided` is the number that earlier jobs ask for.
void check_multiprocessors(const JobSpec& job, int divided) {
  const int own = multiprocessors_of(job);
  if (own > 0 && common_options(job).backend != kernels::Backend::cuda)
    throw UsageError(fmt::format("job {}: multiprocessors: found {}, expected 0 with the backend {}",
                                 job.name, own, kernels::name_of(common_options(job).backend)));
  if (own > 0 && own != divided)
    throw UsageError(fmt::format("job {}: multiprocessors: found {}, expected {}, as for the jobs before it",
                                 job.name, own, divided));
}

// Returns the number of multiprocessors that services have for themselves; 0 if none has any.
int multiprocessors_of(const std::vector<JobSpec>& jobs) {
  for (const JobSpec& job : jobs)
    if (multiprocessors_of(job) > 0) return multiprocessors_of(job);
  return 0;
}

}  // namespace

void check_jobs(const std::vector<JobSpec>& jobs, const std::vector<std::string>& taken_names) {
  std::set<std::string> names(taken_names.begin(), taken_names.end());
  if (jobs.empty()) throw UsageError("found no [[job]], expected at least one");
  for (const JobSpec& job : jobs) {
    if (!is_folder_name(job.name))
      throw UsageError(fmt::format(
          "job '{}': found a name that is no folder, expected letters, digits, '.', '-' and '_'", job.name));
    if (!names.insert(job.name).second)
      throw UsageError(fmt::format("job {}: found the name twice, expected a name for each job", job.name));
    const CommonOptions own = common_options(job), first = common_options(jobs[0]);
    if (own.backend != first.backend)
      throw UsageError(fmt::format("job {}: backend: found {}, but job {} has {}; jobs share one device",
                                   job.name, kernels::name_of(own.backend), jobs[0].name,
                                   kernels::name_of(first.backend)));
    if (own.tuning_file != first.tuning_file)
      throw UsageError(fmt::format("job {}: tuning-file: found '{}', but job {} has '{}'", job.name,
                                   own.tuning_file, jobs[0].name, first.tuning_file));
    check_multiprocessors(job, multiprocessors_of(jobs));
    if (job.train.partition > 1)
      throw UsageError(fmt::format("job {}: partition: found {}, expected 1; jobs share one device", job.name,
                                   job.train.partition));
  }
}

JobScheduler::JobScheduler(const ShareOptions& options, std::vector<JobSpec> jobs, ReadJobs read_jobs,
                           comm::MpiEnvironment& environment, const StopRequest& stop)
    : options_(options),
      multiprocessors_(multiprocessors_of(jobs)),
      read_jobs_(std::move(read_jobs)),
      environment_(environment),
      stop_(stop),
      lock_(options.out),
      inbox_(options.out),
      begin_(Clock::now()) {
  threads_ = use_cores(environment_, options_.threads);
  log_names_of_jobs();
  SharingOptions sharing;
  sharing.backend = common_options(jobs[0]).backend;
  sharing.memory_limit = options_.memory_limit;
  sharing.longest_piece_ms = options_.piece_ms;
  sharing.prefetch = options_.prefetch;
  sharing.hold = options_.hold;
  sharing.multiprocessors = multiprocessors_;
  device_ = std::make_unique<SharedDevice>(sharing);
  const int per_job = std::max(threads_ / std::max(static_cast<int>(jobs.size()), 1), 1);
  for (const JobSpec& job : jobs) add(job, per_job);
}

void JobScheduler::add(const JobSpec& spec, int threads) {
  const int number =
      device_->add({spec.name, spec.priority, spec.kind == JobKind::predict, multiprocessors_of(spec) > 0},
                   spec.arrival <= seconds());
  jobs_.push_back(std::make_unique<Job>(spec, fs::path(options_.out) / spec.name, environment_, stop_,
                                        *device_, number, threads));
  reported_.push_back(false);
}

int JobScheduler::run() {
  write_summary();
  const auto runs = [](const auto& job) { return job->status() == JobStatus::running; };
  while (!all_done() && (!stopped() || std::ranges::any_of(jobs_, runs))) {
    attend();
    if (!stopped()) calibrate_if_due();
    std::this_thread::sleep_for(20ms);
  }
  report_ended();
  for (const Inbox::Order& order : inbox_.orders())
    spdlog::warn("the order {} came too late", order.file.filename().string());
  write_summary();
  fmt::print("{} jobs in {:.1f} s; the last training ended after {:.1f} s{}\n", jobs_.size(), seconds(),
             work_seconds(),
             predicted_seconds_ > 0 ? fmt::format(" ({:.1f} predicted)", predicted_seconds_) : "");
  // Return this status even if another job has failed, because stopped jobs can be resumed, and a
  // script must learn of that.
  if (stopped()) return kRequeueStatus;
  const auto failed = [](const auto& job) { return job->status() == JobStatus::failed; };
  return std::ranges::any_of(jobs_, failed) ? 1 : 0;
}

// Does the work that must go on during a calibration: obeys orders, starts jobs that have arrived,
// and reports jobs that have ended.
void JobScheduler::attend() {
  if (!stopped()) {
    read_inbox();
    start_arrived();
  }
  report_ended();
}

// Returns whether nothing is left to do. Stops the services when all jobs of other kinds have
// ended. If all jobs are services, they run until they are stopped.
bool JobScheduler::all_done() {
  const auto serves = [](const auto& job) { return job->spec().kind == JobKind::predict; };
  const auto busy = [&](const auto& job) { return !job->ended() && !serves(job); };
  if (std::ranges::any_of(jobs_, busy)) return false;
  if (!std::ranges::all_of(jobs_, serves))
    for (const auto& job : jobs_)
      if (serves(job) && !job->ended()) job->stop();
  return std::ranges::all_of(jobs_, [](const auto& job) { return job->ended(); });
}

void JobScheduler::start_arrived() {
  for (const auto& job : jobs_)
    if (job->status() == JobStatus::waiting && job->spec().arrival <= seconds()) {
      job->start();
      ++changes_;
      fmt::print("{:7.1f} s  job {} starts\n", seconds(), job->spec().name);
    }
}

// Obeys the orders of --add and --remove. If an order is wrong, only that order is dropped.
void JobScheduler::read_inbox() {
  for (const Inbox::Order& order : inbox_.orders()) {
    ++changes_;
    try {
      order.removes() ? remove(order.file.stem().string()) : add_jobs(order.file);
    } catch (const std::exception& failure) {
      spdlog::error("--add: {}", failure.what());
    }
    Inbox::remove(order);
  }
}

void JobScheduler::remove(const std::string& name) {
  for (const auto& job : jobs_)
    if (job->spec().name == name && !job->ended()) job->stop();
}

void JobScheduler::add_jobs(const fs::path& file) {
  std::vector<std::string> names;
  for (const auto& job : jobs_) names.push_back(job->spec().name);
  std::vector<JobSpec> specs = read_jobs_(file);
  check_jobs(specs, names);
  const CommonOptions own = common_options(specs[0]), others = common_options(jobs_[0]->spec());
  if (own.backend != others.backend || own.tuning_file != others.tuning_file)
    throw UsageError("a job to add has another backend or tuning-file than the jobs that run");
  for (const JobSpec& spec : specs) check_multiprocessors(spec, multiprocessors_);
  for (JobSpec& spec : specs) {
    spec.arrival += seconds();
    const int count =
        static_cast<int>(std::ranges::count_if(jobs_, [](const auto& job) { return !job->ended(); }));
    add(spec, std::max(threads_ / (count + 1), 1));
  }
}

void JobScheduler::report_ended() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = *jobs_[i];
    if (!job.ended() || reported_[i]) continue;
    reported_[i] = true;
    ++changes_;
    if (job.message().empty())
      fmt::print("{:7.1f} s  job {} {} after {} steps\n", seconds(), job.spec().name, name_of(job.status()),
                 device_->progress(job.number()).steps);
    else
      spdlog::error("job {}: {}", job.spec().name, job.message());
    std::fflush(stdout);
    write_summary();
  }
}

// Calibrates (calibration.h) when all trainings that have started have finished their first step,
// and again when more trainings have started. Meanwhile, the orders of --add and --remove are
// obeyed. If jobs are added, start or end during a calibration, it is dropped and begins again.
void JobScheduler::calibrate_if_due() {
  std::vector<CalibratedJob> running;
  std::size_t started = 0;
  for (const auto& job : jobs_) {
    if (job->status() == JobStatus::waiting) continue;
    // While a job compiles and times its kernels, it stops the other jobs, which would spoil the
    // measurement.
    if (!job->ended() && !device_->progress(job->number()).reserved) return;
    if (job->spec().kind != JobKind::train) continue;
    ++started;
    if (job->ended()) continue;
    if (device_->progress(job->number()).steps == 0) return;
    running.push_back({job->number(), job->spec().priority, job->planned()});
  }
  if (started == calibrated_jobs_ || running.empty()) return;
  // Called every 2 ms. Orders are files, so look for them less often.
  const auto interrupted = [this, changes = changes_, next = Clock::now()]() mutable {
    if (const Clock::time_point now = Clock::now(); now >= next) {
      attend();
      next = now + std::chrono::milliseconds(20);
    }
    return stopped() || changes_ != changes;
  };
  if (!saving_) saving_ = saving_rates(options_.out);
  std::optional<Calibration> calibration =
      Calibrator(*device_, *saving_, interrupted).run(std::move(running), options_.policy);
  if (!calibration) return;
  calibration_ = std::move(calibration);
  calibrated_jobs_ = started;
  predicted_seconds_ = seconds() + calibration_->seconds_left;
  std::vector<std::string> groups;
  for (const std::vector<int>& group : calibration_->groups) {
    std::vector<std::string> names;
    for (const int job : group) names.push_back(jobs_[static_cast<std::size_t>(job)]->spec().name);
    groups.push_back(fmt::format("{}", fmt::join(names, " + ")));
  }
  fmt::print(
      "{:7.1f} s  {}{}; the last training will end after {:.1f} s\n", seconds(), fmt::join(groups, ", then "),
      calibration_->gain > 1 ? fmt::format(", {:.2f} times as fast as one by one", calibration_->gain) : "",
      predicted_seconds_);
  std::fflush(stdout);
}

// Returns the seconds from the start until the end of the last training. While trainings run,
// returns the seconds until the last step that any of them finished.
double JobScheduler::work_seconds() const {
  Clock::time_point last = begin_;
  for (const auto& job : jobs_)
    if (job->spec().kind == JobKind::train)
      last = std::max(last, device_->progress(job->number()).worked_until);
  return std::chrono::duration<double>(last - begin_).count();
}

void JobScheduler::write_summary() const {
  nlohmann::json object{
      {"seconds", seconds()}, {"work_seconds", work_seconds()}, {"memory_bytes", device_->memory_bytes()}};
  if (predicted_seconds_ > 0) object["predicted_seconds"] = predicted_seconds_;
  for (const auto& job : jobs_) {
    nlohmann::json one = json_of(*job, device_->progress(job->number()));
    if (calibration_)
      if (const auto ms = calibration_->alone_ms.find(job->number()); ms != calibration_->alone_ms.end())
        one["step_ms_alone"] = ms->second;
    object["jobs"].push_back(one);
  }
  if (calibration_) object["gain"] = calibration_->gain;
  // A report that cannot be written must not end the jobs.
  try {
    data::write_file_atomically(fs::path(options_.out) / Inbox::kReport, json_text(object) + "\n");
  } catch (const std::exception& failure) {
    spdlog::warn("{}", failure.what());
  }
}

}  // namespace convoy::app
