// Runs a training: epochs of steps, evaluation, checkpoints and metrics. Every rank runs the same
// code.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "app/execute/session.h"
#include "app/model_parallel/plan.h"
#include "app/training/checkpoint/folder.h"
#include "app/training/checkpoint/session_state.h"
#include "app/training/dataset.h"
#include "app/training/initial_weights.h"
#include "app/training/report/run_report.h"
#include "app/training/report/trace.h"
#include "app/training/run_lock.h"
#include "app/training/run_ranks.h"
#include "app/training/schedule.h"
#include "app/training/signals.h"
#include "app/training/train_options.h"
#include "comm/placement/environment.h"

namespace convoy::app {

class Trainer {
 public:
  // Decides and checks everything before the first step. Collective.
  Trainer(const TrainOptions& options, comm::MpiEnvironment& environment, const StopSignals& signals);

  // Returns the exit status: 75 after a checkpoint that a signal requested, else 0.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void make_session();
  Network make_replica_network() const;
  void prepare(Network& network);
  StepOptions session_options();
  void obey_signals() const;
  void refuse_second_run() const;
  void open_checkpoints();
  void check_resumed_data(const CheckpointState& state, const std::filesystem::path& path);
  void finish();
  bool resume();  // returns whether there was a checkpoint
  std::int64_t replica_capacity() const;
  void start_step(bool stop_requested);
  void start_part(std::int64_t part, bool last, bool stop_requested);
  void finish_steps(int left_in_flight);
  bool evaluation_is_due() const;
  bool checkpoint_is_due() const;
  bool evaluate();  // returns whether the accuracy (with --ema, the moving average's) is the best so far
  void describe_run(CheckpointState& state) const;
  void save_checkpoint(bool best);
  kernels::Shape input_shape() const;

  const TrainOptions& options_;
  std::string structure_sha256_;  // of a model file
  comm::MpiEnvironment& environment_;
  const StopSignals& signals_;
  const comm::Communicator& ranks_;
  int threads_ = 1;
  std::unique_ptr<RunRanks> run_ranks_;
  std::unique_ptr<Dataset> dataset_;
  Dataset::Delivery delivery_;
  std::unique_ptr<data::BatchSource> train_source_,
      test_source_;  // they outlive the session, whose device may hold batches
  std::optional<PartitionPlan> plan_;
  std::int64_t frozen_parameters_ = 0;
  FitRows initial_weights_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<SessionState> session_state_;
  std::unique_ptr<RunReport> report_;
  std::unique_ptr<RunLock> lock_;                  // on rank 0
  std::unique_ptr<CheckpointFolder> checkpoints_;  // on rank 0; on all ranks of a run that resumes
  std::unique_ptr<Trace> trace_;                   // with --trace
  Schedule schedule_;
  std::deque<StepRecord> in_flight_;  // steps that are started and not finished, oldest first
  Clock::time_point last_finished_;
  std::int64_t steps_per_epoch_ = 0, total_steps_ = 0, step_ = 0;
  double best_accuracy_ = -1;    // none yet
  bool stop_requested_ = false;  // by any rank, in a finished step
};

}  // namespace convoy::app
