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
  check_train_options(options_, ranks_.size());
  together(ranks_, [&] { backend_ = backend_of(options_.backend, options_.precision); });
  threads_ = use_cores(ranks_, options_.threads);
  collectives_ = comm::make_mpi_collectives(ranks_);
  dataset_ = std::make_unique<Dataset>(options_, ranks_);
  together(ranks_, [&] { make_session(); });
  resume();
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

}  // namespace convoy::app
