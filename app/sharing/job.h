// A job of `convoy share`, and the thread that runs it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/choices.h"
#include "app/sharing/service/prediction_service.h"
#include "app/sharing/shared_device.h"
#include "app/training/evaluate.h"
#include "app/training/run_host.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"

namespace convoy::app {

enum class JobKind : std::uint8_t { train, evaluate, predict };
template <>
inline constexpr auto kChoices<JobKind> = std::to_array<Choice<JobKind>>({{"train", JobKind::train},
                                                                          {"evaluate", JobKind::evaluate},
                                                                          {"predict", JobKind::predict}});

struct JobSpec {
  std::string name;
  JobKind kind = JobKind::train;
  int priority = 0;    // jobs of higher priority go first
  double arrival = 0;  // seconds after the start of `convoy share`
  TrainOptions train;
  std::vector<TrainOptions> members;  // the options of each member of a training with --members
  EvaluateOptions evaluation;
  ServiceOptions service;
};

// The options that jobs of every kind have.
struct CommonOptions {
  kernels::Backend backend;
  std::int64_t threads;
  std::string tuning_file;
};
CommonOptions common_options(const JobSpec& spec);

enum class JobStatus : std::uint8_t { waiting, running, finished, stopped, failed };
template <>
inline constexpr auto kChoices<JobStatus> = std::to_array<Choice<JobStatus>>({{"waiting", JobStatus::waiting},
                                                                              {"running", JobStatus::running},
                                                                              {"finished",
                                                                               JobStatus::finished},
                                                                              {"stopped", JobStatus::stopped},
                                                                              {"failed", JobStatus::failed}});

// Runs a job in a thread of its own. The job's folder gets all files that the job would write if it
// ran alone. It also gets log.txt, with the text that the job would print.
class Job {
 public:
  using Clock = std::chrono::steady_clock;

  // `number` is the job's number in `device`. The job leaves its files in `folder`. `process` is
  // the stop request of the whole process. `environment`, `process` and `device` must outlive the
  // job.
  Job(JobSpec spec, const std::filesystem::path& folder, comm::MpiEnvironment& environment,
      const StopRequest& process, SharedDevice& device, int number, int threads);
  // Asks the job to stop and waits for it.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void start();
  // Asks the job to stop after its current step. A training then saves a checkpoint, from which it
  // can be resumed. A job that has not started yet never starts.
  void stop();

  const JobSpec& spec() const { return spec_; }
  int number() const { return number_; }
  JobStatus status() const { return status_; }
  bool ended() const { return status_ != JobStatus::waiting && status_ != JobStatus::running; }
  // Returns why the job failed, in one line; empty if it did not.
  std::string message() const;
  // Returns all the work of a training, as planned when it was set up.
  PlannedWork planned() const;

 private:
  class Stop final : public StopRequest {
   public:
    explicit Stop(const StopRequest& process) : process_(process) {}
    int received() const override { return requested_ ? 1 : process_.received(); }
    void request() { requested_ = true; }

   private:
    const StopRequest& process_;
    std::atomic<bool> requested_ = false;
  };

  void run() noexcept;
  int run_training();
  int run_evaluation();
  int run_service();
  void fail(int status, const std::string& message);

  JobSpec spec_;
  const std::filesystem::path folder_;
  comm::MpiEnvironment& environment_;
  SharedDevice& device_;
  const int number_, threads_;
  Stop stop_;
  std::ofstream log_;
  mutable std::mutex mutex_;
  std::string message_;
  std::atomic<JobStatus> status_ = JobStatus::waiting;
  std::atomic<int> exit_status_ = 0;
  PlannedWork planned_;
  std::thread thread_;
};

}  // namespace convoy::app
