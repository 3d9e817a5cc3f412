#include "app/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "app/commands/commands.h"
#include "app/model/zoo/zoo.h"
#include "app/training/agreement.h"
#include "app/training/rank_setup.h"

namespace convoy::app {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

kernels::OptimizerProblem optimizer_of(const TrainOptions& options) {
  kernels::OptimizerProblem problem;
  problem.kind = options.optimizer == "lars"    ? kernels::OptimizerKind::lars
                 : options.optimizer == "adamw" ? kernels::OptimizerKind::adamw
                                                : kernels::OptimizerKind::sgd;
  problem.momentum = static_cast<float>(options.momentum);
  problem.nesterov = options.nesterov;
  problem.weight_decay = static_cast<float>(options.weight_decay);
  problem.trust_coefficient = static_cast<float>(options.trust_coefficient);
  problem.beta1 = static_cast<float>(options.beta1);
  problem.beta2 = static_cast<float>(options.beta2);
  problem.epsilon = static_cast<float>(options.epsilon);
  return problem;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, comm::MpiEnvironment& environment)
    : options_(options), environment_(environment), ranks_(environment.world()) {
  together(ranks_, [&] {
    check_train_options(options_, ranks_.size());
    backend_ = backend_of(options_.backend, options_.precision);
  });
  threads_ = use_cores(ranks_, options_.threads);
  collectives_ = comm::make_mpi_collectives(ranks_);
  dataset_ = std::make_unique<Dataset>(options_, ranks_);
  steps_per_epoch_ = (dataset_->train_size() + options_.global_batch - 1) / options_.global_batch;
  total_steps_ = total_steps(options_, steps_per_epoch_);
  together(ranks_, [&] {
    schedule_ = make_schedule(options_, steps_per_epoch_);
    make_session();
  });
  together(ranks_, [&] {
    if (ranks_.rank() == 0)
      checkpoints_ = std::make_unique<CheckpointFolder>(std::filesystem::path(options_.out) / "checkpoint",
                                                        static_cast<int>(options_.keep_checkpoints));
  });
  if (options_.resume) resume();
  report_ = std::make_unique<RunReport>();
  train_source_ = dataset_->train({step_ / steps_per_epoch_, step_ % steps_per_epoch_});
  if (dataset_->test_size() > 0) test_source_ = dataset_->test();
}

void Trainer::make_session() {
  const data::ImageShape image = dataset_->input_shape();
  const std::int64_t capacity = (options_.global_batch + ranks_.size() - 1) / ranks_.size();
  const Network network = make_network(options_.model, {capacity, image.channels, image.height, image.width},
                                       dataset_->classes());
  SessionOptions session;
  session.backend = backend_;
  session.synchronised_batch_norm = options_.sync_batch_norm;
  session.label_smoothing = static_cast<float>(options_.label_smoothing);
  session.optimizer = optimizer_of(options_);
  session.clip_gradient_norm = options_.clip_gradient_norm;
  session.memory_limit = static_cast<std::int64_t>(options_.memory_limit);
  session.seed = static_cast<std::uint64_t>(options_.seed);
  session_ = std::make_unique<Session>(network, session, *collectives_);
}

void Trainer::run() {
  while (step_ < total_steps_) {
    const StepRecord record = train_one_step();
    ++step_;
    report_->step(record);
    if (step_ % steps_per_epoch_ == 0 || step_ == total_steps_) {
      if (test_source_) report_->evaluation(record, evaluate());
    }
  }
}

StepRecord Trainer::train_one_step() {
  const auto start = Clock::now();
  const double waited = train_source_->wait_ms();
  environment_.set_step(step_);
  StepRecord record;
  record.epoch = step_ / steps_per_epoch_;
  record.step = step_;
  record.learning_rate = schedule_.learning_rate_at(step_);
  session_->control().step = static_cast<std::uint64_t>(step_);
  session_->control().learning_rate = static_cast<float>(record.learning_rate);
  {
    const data::BatchLease batch = train_source_->next();
    load(*batch);
  }
  record.data_wait_ms = train_source_->wait_ms() - waited;
  record.metrics = session_->train_step();
  record.exposed_comm_ms = session_->exposed_comm_ms();
  record.step_ms = ms_since(start);
  return record;
}

void Trainer::load(const data::Batch& batch) {
  const std::int64_t floats = std::int64_t{batch.capacity} * batch.shape.bytes();
  std::memcpy(session_->memory().images(), batch.images, static_cast<std::size_t>(floats) * sizeof(float));
  std::memcpy(session_->memory().labels(), batch.labels,
              static_cast<std::size_t>(batch.capacity) * sizeof(std::int32_t));
  session_->control().valid = batch.valid;
  session_->control().global_valid = batch.global_valid;
  session_->control().first_sample = static_cast<std::uint64_t>(batch.first);
}

StepMetrics Trainer::evaluate() {
  session_->average_states();
  StepMetrics sum;
  for (std::int64_t step = 0; step < test_source_->steps_per_epoch(); ++step) {
    const data::BatchLease batch = test_source_->next();
    load(*batch);
    sum += session_->evaluate_step();
  }
  return sum;
}

void Trainer::resume() {}

}  // namespace convoy::app
