// Runs the jobs of `convoy share`: starts them, decides which run side by side, takes orders from
// the folder's inbox, and writes share.json.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/sharing/calibration.h"
#include "app/sharing/inbox.h"
#include "app/sharing/job.h"
#include "app/training/run_lock.h"

namespace convoy::app {

struct ShareOptions {
  std::string out;  // the folder of all jobs
  std::int64_t memory_limit = 0;
  SharePolicy policy = SharePolicy::automatic;
  double piece_ms = 2;
  bool prefetch = true, hold = true;
  std::int64_t threads = 0;  // threads of the whole process; 0: its share of the host's cores
};

template <>
inline constexpr auto kChoices<SharePolicy> = std::to_array<Choice<SharePolicy>>(
    {{"auto", SharePolicy::automatic}, {"turns", SharePolicy::turns}, {"together", SharePolicy::together}});

// Throws UsageError if the jobs cannot run in one process. Their names must differ and be names of
// folders. They must have the same backend and tuning file, and must not be partitioned. Services
// with multiprocessors of their own must all have the same number of them, on a GPU.
void check_jobs(const std::vector<JobSpec>& jobs, const std::vector<std::string>& taken_names = {});

class JobScheduler {
 public:
  using ReadJobs = std::function<std::vector<JobSpec>(const std::filesystem::path& file)>;

  // `read_jobs` reads the files that --add puts into the inbox.
  JobScheduler(const ShareOptions& options, std::vector<JobSpec> jobs, ReadJobs read_jobs,
               comm::MpiEnvironment& environment, const StopRequest& stop);
  // Returns the exit status: 75 if a signal stopped jobs, else 1 if a job failed, else 0.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void add(const JobSpec& spec, int threads);
  void add_jobs(const std::filesystem::path& file);
  void remove(const std::string& name);
  bool all_done();
  void attend();
  void start_arrived();
  void read_inbox();
  void report_ended();
  void calibrate_if_due();
  bool stopped() const { return stop_.received() != 0; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double work_seconds() const;
  void write_summary() const;

  const ShareOptions options_;
  const int multiprocessors_;  // SharingOptions::multiprocessors
  ReadJobs read_jobs_;
  comm::MpiEnvironment& environment_;
  const StopRequest& stop_;
  RunLock lock_;
  Inbox inbox_;
  int threads_ = 1;
  std::unique_ptr<SharedDevice> device_;
  std::vector<std::unique_ptr<Job>> jobs_;  // in the order of the jobs' numbers in device_
  std::vector<bool> reported_;
  // The number of orders, starts and ends of jobs so far. A calibration begins again if this
  // changes.
  std::int64_t changes_ = 0;
  std::size_t calibrated_jobs_ = 0;
  std::optional<SavingRates> saving_;  // rates for checkpoints, once they are measured
  std::optional<Calibration> calibration_;
  // The predicted end of the last training, in seconds since the start; 0 before it is known.
  double predicted_seconds_ = 0;
  Clock::time_point begin_;
};

}  // namespace convoy::app
