// One training as its user sees it: options, learning rates, folder, report and checkpoints. The
// trainer runs its steps, alone or with other members of a session.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/dataset.h"
#include "app/training/report/run_report.h"
#include "app/training/run_lock.h"
#include "app/training/schedule.h"
#include "app/training/train_options.h"
#include "comm/communicator.h"

namespace convoy::app {

// A step of all trainings of a session, from its start to its end.
struct StartedStep {
  std::int64_t step = 0;        // of the whole run, from 1
  std::int64_t parts_left = 1;  // not yet finished
  StepTiming timing;
};

class Training {
 public:
  // `ranks` run the training together. The step counts, and the SHA-256 of a model file's
  // structure, are those of the run. Throws UsageError if the schedule does not fit into the run.
  Training(TrainOptions options, const comm::Communicator& ranks, const Dataset& dataset,
           std::int64_t steps_per_epoch, std::string structure_sha256);

  const TrainOptions& options() const { return options_; }
  double learning_rate_at(std::int64_t step) const { return schedule_.learning_rate_at(step); }

  // Locks the folder and opens its checkpoints.
  void open_folder();
  // The session's tensors of this training. `captures`: this rank is one of those that save them.
  void bind(std::unique_ptr<SessionState> state, bool captures);
  // Returns the step of the newest whole checkpoint of at most this step, 0 if there is none.
  std::int64_t newest_checkpoint(std::int64_t at_most) const;
  // Takes the state of the checkpoint that newest_checkpoint() finds.
  void resume(Dataset& dataset, std::int64_t at_most);
  void start_report(const RunPlan& plan, const Session& session, RunReport::Output output);

  // Adds the metrics of a finished part of the oldest step. If it is the last part, reports the
  // step and then throws DivergenceError if its loss is not finite and --stop-on-divergence is on.
  void finish_part(const StartedStep& step, const StepMetrics& metrics);
  // Returns whether the accuracy (with --ema, the moving average's) is the best so far.
  bool evaluated(std::int64_t step, const StepMetrics& test, const std::optional<StepMetrics>& average);
  // Rank 0 writes the parameters, which are the same on all replicas. The others wait, at most
  // --timeout. Collective, like finish().
  enum class Keep : std::uint8_t { newest, newest_and_best, best };
  void save_checkpoint(std::int64_t step, Keep keep);
  void finish(std::int64_t step, std::int64_t arena_bytes);
  // Whether the run was resumed after its last step and still has its results. Collective.
  bool keeps_results() const;

  RunReport& report() { return *report_; }
  double last_loss() const { return last_loss_; }  // NaN before the first step
  double last_accuracy() const { return last_accuracy_; }
  double best_accuracy() const { return best_accuracy_; }                      // -1 before the first test
  const std::string& parameters_sha256() const { return parameters_sha256_; }  // after finish()

 private:
  void describe(CheckpointState& state, std::int64_t step) const;
  void check_data(Dataset& dataset, const CheckpointState& state, const std::filesystem::path& path) const;

  const TrainOptions options_;
  const comm::Communicator& ranks_;
  const Dataset& dataset_;
  const std::int64_t steps_per_epoch_;
  const std::string structure_sha256_;
  Schedule schedule_;
  std::unique_ptr<RunLock> lock_;                  // on rank 0
  std::unique_ptr<CheckpointFolder> checkpoints_;  // on rank 0; on all ranks of a run that resumes
  std::unique_ptr<SessionState> state_;
  bool captures_ = true;
  std::unique_ptr<RunReport> report_;
  StepMetrics parts_;  // of the oldest step's finished parts
  double last_loss_, last_accuracy_;
  double best_accuracy_ = -1;
  std::string parameters_sha256_;
};

}  // namespace convoy::app
