// Measures the training steps of several jobs: how long a step takes when its job runs alone, and
// when jobs run at the same time ("side by side"). The measured steps are part of the trainings, so
// no work is lost. The measurements decide which jobs run side by side, and predict when all have
// ended. Jobs that run side by side form a group (turns.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "app/sharing/makespan.h"
#include "app/sharing/shared_device.h"
#include "app/training/run_host.h"

namespace convoy::app {

struct CalibratedJob {
  int number = 0;  // the job's number in the SharedDevice
  int priority = 0;
  // All the work of the job, as planned when it was set up.
  PlannedWork planned;
};

enum class SharePolicy : std::uint8_t { automatic, turns, together };

struct Calibration {
  SharedDevice::Groups groups;  // jobs that run side by side
  // Milliseconds of a step of each job that runs alone, by the job's number.
  std::map<int, double> alone_ms;
  // The largest gain of a group: how many times as fast its jobs run side by side as one after the
  // other. It is 1 if no group gains.
  double gain = 1;
  double seconds_left = 0;  // predicted from now until the last of these jobs has ended
};

// The bytes of a checkpoint that are read from the device, and that are written, in a millisecond.
struct SavingRates {
  double read = 0, written = 0;
};

// Measures the rates with a small checkpoint, which it writes into the folder. Both are infinity if
// that fails, because the jobs report the error when they save their own checkpoints.
SavingRates saving_rates(const std::filesystem::path& folder);

class Calibrator {
 public:
  // `interrupted` is called every few milliseconds while jobs are measured, and returns whether to
  // give up. `saving` are the rates for checkpoints.
  Calibrator(SharedDevice& device, const SavingRates& saving, std::function<bool()> interrupted)
      : device_(device), saving_(saving), interrupted_(std::move(interrupted)) {}

  // Measures the jobs, sets their groups in the device and returns the result. The jobs must have
  // finished their first step. Returns nothing if it was interrupted or if all jobs have ended.
  std::optional<Calibration> run(std::vector<CalibratedJob> jobs, SharePolicy policy);

 private:
  // Lets only the trainings `set` run for some time. Returns the finished steps per millisecond of
  // each of them.
  std::map<int, double> measure(const std::vector<int>& set, std::chrono::milliseconds least_time);
  double share_that_computes(const std::vector<CalibratedJob>& jobs, const Calibration& result);
  bool ended(int job) const { return device_.progress(job).ended; }
  SharedDevice::Groups groups_by_memory(const std::vector<int>& jobs) const;
  GroupOfJobs work_of(std::vector<int> set, const std::vector<CalibratedJob>& jobs,
                      const Calibration& result);
  double steps_left(const CalibratedJob& job) const;
  std::map<int, double> rates_of(const std::vector<int>& set, const Calibration& result);
  double schedule(const std::vector<CalibratedJob>& jobs, const Calibration& result);

  SharedDevice& device_;
  const SavingRates saving_;
  std::function<bool()> interrupted_;
  std::map<std::vector<int>, std::map<int, double>> measured_;
};

}  // namespace convoy::app
