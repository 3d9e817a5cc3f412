// The training run: epochs of steps, evaluation, checkpoints, metrics; the same code on every rank.
#pragma once

#include <memory>
#include <optional>

#include "app/commands/train_options.h"
#include "app/runtime/session.h"
#include "app/training/checkpoint.h"
#include "app/training/dataset.h"
#include "app/training/schedule.h"
#include "comm/environment.h"

namespace convoy::app {

class Trainer {
 public:
  // Collective; everything is decided and checked here, before the first step.
  Trainer(const TrainOptions& options, comm::MpiEnvironment& environment);

  // Throws ExitStatus{75} after a checkpoint that a signal asked for.
  void run();

 private:
  void make_session();
  void resume();
  void train_one_step();
  void end_epoch();
  void evaluate();
  void save_checkpoint();
  void write_summary();
  CheckpointState state() const;
  bool stop_agreed() const;

  const TrainOptions& options_;
  comm::MpiEnvironment& environment_;
  const comm::Communicator& ranks_;
  std::unique_ptr<comm::Collectives> collectives_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<data::BatchSource> train_source_, test_source_;
  Schedule schedule_;
  std::int64_t steps_per_epoch_ = 0, total_steps_ = 0, step_ = 0;
};

}  // namespace convoy::app
