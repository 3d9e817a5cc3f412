#include "app/sharing/job.h"

#include <fmt/format.h>
#include <omp.h>

#include <filesystem>
#include <new>

#include "app/errors.h"
#include "app/sharing/job_log.h"
#include "app/training/trainer.h"
#include "data/atomic_file.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {

CommonOptions common_options(const JobSpec& spec) {
  if (spec.kind == JobKind::predict)
    return {spec.service.backend, spec.service.threads, spec.service.tuning_file};
  const TrainOptions& run = spec.kind == JobKind::train ? spec.train : spec.evaluation.evaluation.run;
  return {run.backend, run.threads, run.tuning_file};
}

Job::Job(JobSpec spec, const std::filesystem::path& folder, comm::MpiEnvironment& environment,
         const StopRequest& process, SharedDevice& device, int number, int threads)
    : spec_(std::move(spec)),
      folder_(folder),
      environment_(environment),
      device_(device),
      number_(number),
      threads_(common_options(spec_).threads > 0 ? static_cast<int>(common_options(spec_).threads) : threads),
      stop_(process) {
  spec_.train.out = folder.string();
}

Job::~Job() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Job::start() {
  status_ = JobStatus::running;
  thread_ = std::thread([this] { run(); });
}

void Job::stop() {
  stop_.request();
  if (status_ != JobStatus::waiting) return;
  device_.end(number_);
  status_ = JobStatus::stopped;
}

std::string Job::message() const {
  const std::scoped_lock lock(mutex_);
  return message_;
}

PlannedWork Job::planned() const {
  const std::scoped_lock lock(mutex_);
  return planned_;
}

void Job::fail(int status, const std::string& message) {
  const std::scoped_lock lock(mutex_);
  message_ = message;
  exit_status_ = status;
}

// Runs the job and records how it ended. Destroys the job's session before it tells the device that
// the job has ended, because the device then gives the job's memory to other jobs.
void Job::run() noexcept {
  const LogName name(spec_.name);
  try {
    if (common_options(spec_).backend == kernels::Backend::cuda)
      kernels::use_gpu(environment_.device().index);
    omp_set_num_threads(threads_);
    std::filesystem::create_directories(folder_);
    log_.open(folder_ / "log.txt", std::ios::app);
    if (!log_) throw std::runtime_error(fmt::format("{}: cannot write", (folder_ / "log.txt").string()));
    exit_status_ = spec_.kind == JobKind::train      ? run_training()
                   : spec_.kind == JobKind::evaluate ? run_evaluation()
                                                     : run_service();
  } catch (const UsageError& error) {
    fail(2, error.what());
  } catch (const ExitStatus& exit) {
    fail(exit.status, exit.status == kRequeueStatus ? "" : fmt::format("ended with status {}", exit.status));
  } catch (const std::bad_alloc&) {
    fail(1, "out of memory");
  } catch (const std::exception& error) {
    fail(1, error.what());
  }
  device_.end(number_);
  if (!message_.empty()) log_ << "convoy: " << message_ << std::endl;
  status_ = exit_status_ == 0                ? JobStatus::finished
            : exit_status_ == kRequeueStatus ? JobStatus::stopped
                                             : JobStatus::failed;
}

int Job::run_training() {
  RunHost host{environment_, stop_, &log_, &device_.gate(number_), threads_};
  host.planned = [this](const PlannedWork& work) {
    const std::scoped_lock lock(mutex_);
    planned_ = work;
  };
  return Trainer(spec_.train, host, spec_.members).run();
}

int Job::run_evaluation() {
  EvaluateOptions options = spec_.evaluation;
  options.evaluation.gate = &device_.gate(number_);
  options.evaluation.run.threads = threads_;
  const EvaluationResult result = evaluate(std::move(options), environment_);
  log_ << result.text << std::endl;
  data::write_file_atomically(folder_ / "evaluation.json", result.json + "\n");
  return 0;
}

int Job::run_service() {
  ServiceOptions options = spec_.service;
  options.gate = &device_.gate(number_);
  options.threads = threads_;
  options.out = folder_;
  if (options.socket.empty() && options.watch.empty()) options.socket = folder_ / "socket";
  PredictionService service(options);
  log_ << service.describe() << std::endl;
  service.run([this] { return stop_.received() != 0; });
  return 0;
}

}  // namespace convoy::app
