// One training with its options, learning rates, folder, report and checkpoints. The class does not
// run steps. The trainer (trainer.h) does so, for one training or for several that run together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/dataset.h"
#include "app/training/learning_rate_schedule.h"
#include "app/training/report/run_report.h"
#include "app/training/run_lock.h"
#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

// A step that has been started, for all trainings of a session.
struct StartedStep {
  // The number of the step in the whole run, from 1.
  std::int64_t step = 0;
  std::int64_t parts_left = 1;  // the number of parts that are not finished (--accumulate)
  StepTiming timing;
};

class Training {
 public:
  // `ranks` are the ranks that run the training together. `structure_sha256` is the SHA-256 of a
  // model file's structure (run_network.h), or empty for a built-in network. Throws UsageError if
  // the schedule does not fit into the run.
  Training(TrainOptions options, const comm::Communicator& ranks, const Dataset& dataset,
           std::int64_t steps_per_epoch, std::string structure_sha256);

  const TrainOptions& options() const { return options_; }
  double learning_rate_at(std::int64_t step) const { return schedule_.learning_rate_at(step); }

  // Locks the folder and opens its checkpoints.
  void open_folder();
  // Gives the training its tensors, which are in a session. `captures` says whether this rank sends
  // or collects tensors for checkpoints.
  void bind(std::unique_ptr<SessionState> state, bool captures);
  // Returns the step of the newest complete checkpoint whose step is at most `at_most`. Returns 0
  // if there is none.
  std::int64_t newest_checkpoint(std::int64_t at_most) const;
  // Restores the state of the checkpoint that newest_checkpoint() finds.
  void resume(Dataset& dataset, std::int64_t at_most);
  void start_report(const RunPlan& plan, const Session& session, RunReport::Output output);

  // Adds the metrics of a finished part of the oldest step; with --accumulate a step has several
  // parts. After the last part it reports the step. Then it throws DivergenceError if the loss is
  // not finite and --stop-on-divergence is on.
  void finish_part(const StartedStep& step, const StepMetrics& metrics);
  // Reports a test. Returns whether the accuracy is the best so far. With --ema the accuracy of the
  // moving average is compared.
  bool evaluated(std::int64_t step, const StepMetrics& test, const std::optional<StepMetrics>& average);
  // Saves a checkpoint on rank 0. It serves all replicas, because their parameters are the same.
  // The other ranks wait, but fail after --timeout seconds. If `last` is set, finish() follows at
  // this step, and the digest of the parameters is computed while the file is written.
  // save_checkpoint() and finish() are collective.
  enum class Keep : std::uint8_t { newest, newest_and_best, best };
  void save_checkpoint(std::int64_t step, Keep keep, bool last);
  void finish(std::int64_t step, std::int64_t arena_bytes);
  // Returns whether a resumed run had no step left and its folder still holds the results.
  // Collective.
  bool keeps_results() const;

  RunReport& report() { return *report_; }
  double last_loss() const { return last_loss_; }  // NaN before the first step
  double last_accuracy() const { return last_accuracy_; }
  double best_accuracy() const { return best_accuracy_; }  // -1 before the first test
  // Returns an empty text before finish(). On ranks other than 0 it may stay empty.
  const std::string& parameters_sha256() const { return parameters_sha256_; }

 private:
  void describe(CheckpointState& state, std::int64_t step) const;
  void check_data(Dataset& dataset, const CheckpointState& state, const std::filesystem::path& path) const;

  const TrainOptions options_;
  const comm::Communicator& ranks_;
  const Dataset& dataset_;
  const std::int64_t steps_per_epoch_;
  const std::string structure_sha256_;
  LearningRateSchedule schedule_;
  std::unique_ptr<RunLock> lock_;  // set only on rank 0
  // Null on all ranks but rank 0, unless the run resumes.
  std::unique_ptr<CheckpointFolder> checkpoints_;
  std::unique_ptr<SessionState> state_;
  bool captures_ = true;
  std::unique_ptr<RunReport> report_;
  StepMetrics parts_;  // sums over the finished parts of the oldest step
  double last_loss_, last_accuracy_;
  double best_accuracy_ = -1;
  std::string parameters_sha256_;
  // The digest of the parameters after step digest_step_, on rank 0; -1 if there is none.
  std::string digest_;
  std::int64_t digest_step_ = -1;
};

}  // namespace convoy::app
