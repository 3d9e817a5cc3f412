#include "app/training/trainer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/model/drop_path.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/limited_steps.h"
#include "app/training/parameter_rates.h"
#include "app/training/rank_facts.h"
#include "app/training/rank_setup.h"
#include "app/training/report/bottleneck.h"
#include "app/training/run_network.h"

namespace convoy::app {
namespace {

kernels::OptimizerProblem optimizer_of(const TrainOptions& options) {
  kernels::OptimizerProblem problem;
  problem.kind = options.optimizer;
  problem.velocity = options.momentum > 0;
  problem.averages = options.ema > 0;
  return problem;
}

Member member_of(const TrainOptions& options) {
  Member member;
  member.seed = static_cast<std::uint64_t>(options.seed);
  kernels::Hyperparameters& numbers = member.hyperparameters;
  numbers.momentum = static_cast<float>(options.momentum);
  numbers.nesterov = options.nesterov ? 1 : 0;
  numbers.weight_decay = static_cast<float>(options.weight_decay);
  numbers.trust_coefficient = static_cast<float>(options.trust_coefficient);
  numbers.beta1 = static_cast<float>(options.beta1);
  numbers.beta2 = static_cast<float>(options.beta2);
  numbers.epsilon = static_cast<float>(options.epsilon);
  numbers.label_smoothing = static_cast<float>(options.label_smoothing);
  numbers.average_decay = options.ema;
  numbers.largest_norm = options.clip_gradient_norm;
  return member;
}

// Names the rank and the step in an error, as one rank alone may see the fault of its device.
template <typename Body>
auto as_rank(const comm::MpiEnvironment& environment, std::int64_t step, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(fmt::format("{}: step {}: out of memory", environment.identity(), step));
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: step {}: {}", environment.identity(), step, error.what()));
  }
}

// The run is valid, but its rate and its scaled learning rate are not those of the requested batch.
void warn_of_short_steps(std::int64_t global_batch, std::int64_t train_images) {
  if (global_batch > train_images)
    spdlog::warn("--global-batch: found {}, but there are {} training images; a step sees each of them once",
                 global_batch, train_images);
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, comm::MpiEnvironment& environment, const StopSignals& signals)
    : options_(options), environment_(environment), signals_(signals), ranks_(environment.world()) {
  run_on_all_ranks(ranks_, [&] { check_train_options(options_, ranks_.size()); });
  require_same_flags(ranks_, facts_of(options_));
  run_on_all_ranks(ranks_, [&] { refuse_second_run(); });
  threads_ = use_cores(environment_, options_.threads);
  obey_signals();
  run_ranks_ = std::make_unique<RunRanks>(ranks_, static_cast<int>(options_.partition), options_.backend);
  dataset_ = std::make_unique<Dataset>(options_, run_ranks_->replicas(), threads_);
  require_same_data(ranks_, options_.data, facts_of(*dataset_, options_, run_ranks_->replicas()));
  obey_signals();
  if (dataset_->train_size() == 0)
    throw std::runtime_error(fmt::format("{}: no training images", options_.data));
  steps_per_epoch_ = (dataset_->train_size() + options_.global_batch - 1) / options_.global_batch;
  total_steps_ = total_steps(options_, steps_per_epoch_);
  run_on_all_ranks(ranks_, [&] { schedule_ = make_schedule(options_, steps_per_epoch_); });
  make_session();
  run_on_all_ranks(ranks_, [&] { open_checkpoints(); });
  const bool resumed = options_.resume && resume();
  obey_signals();
  run_on_all_ranks(ranks_, [&] {
    const RunPlan plan{places_of(environment_),
                       threads_,
                       steps_per_epoch_,
                       total_steps_,
                       resumed ? std::optional(step_) : std::nullopt,
                       plan_,
                       frozen_parameters_,
                       initial_weights_};
    report_ = std::make_unique<RunReport>(options_, plan, *dataset_, *session_, ranks_.rank() == 0);
  });
  if (ranks_.rank() == 0) warn_of_short_steps(options_.global_batch, dataset_->train_size());
  if (!options_.trace.empty())
    trace_ = std::make_unique<Trace>(options_.trace, *session_, ranks_, step_, total_steps_);
  train_source_ =
      dataset_->train(delivery_, {step_ / steps_per_epoch_, step_ % steps_per_epoch_ * options_.accumulate});
  if (dataset_->test_size() > 0) test_source_ = dataset_->test(delivery_);
}

// Ends the process on a signal: before the first step there is nothing to keep in a checkpoint.
// Collective, as signals reach ranks at different times.
void Trainer::obey_signals() const {
  const std::int32_t received = signals_.received() != 0 ? 1 : 0;
  if (ranks_.all_reduce(received, comm::ReduceOp::max, "signals during the start-up") == 0) return;
  if (ranks_.rank() == 0) fmt::print(stderr, "convoy: {}\n", kStoppedEarly);
  throw ExitStatus{kRequeueStatus};
}

Network Trainer::make_replica_network() const {
  const data::ImageShape image = dataset_->input_shape();
  Network network = make_network(
      options_.model, {replica_capacity(), image.channels, image.height, image.width}, dataset_->classes());
  if (options_.reinitialise) network.reinitialise();
  return network;
}

// Decides which parameters are trained and what they start from.
void Trainer::prepare(Network& network) {
  const int overridden = set_rates(network, options_);
  if (overridden > 0 && ranks_.rank() == 0)
    spdlog::warn("--rate trains {} parameters that --freeze names, too", overridden);
  for (const ParameterSpec& spec : network.parameters())
    if (spec.frozen()) frozen_parameters_ += spec.shape.elements();
  if (!options_.init.empty())
    initial_weights_ = set_initial_weights(network, options_.init, dataset_->info().classes);
}

std::int64_t Trainer::replica_capacity() const {
  const std::int64_t replicas = run_ranks_->replicas().size();
  return (options_.global_batch / options_.accumulate + replicas - 1) / replicas;
}

StepOptions Trainer::session_options() {
  StepOptions session;
  session.backend = options_.backend;
  session.precision = options_.precision;
  session.input = input_of(options_.backend, *dataset_, replica_capacity(), options_.data_on_device);
  session.synchronised_batch_norm = options_.sync_batch_norm;
  session.mixing = options_.mixup > 0 || options_.cutmix > 0;
  session.loss_weights.assign(options_.loss_weights.begin(), options_.loss_weights.end());
  session.optimizer = optimizer_of(options_);
  session.accumulate = options_.accumulate > 1;
  session.clip = options_.clip_gradient_norm > 0;
  session.tuning_file = options_.tuning_file;
  session.lanes = static_cast<int>(options_.lanes);
  session.memory_limit = static_cast<std::int64_t>(options_.memory_limit);
  session.members = {member_of(options_)};
  return session;
}

void Trainer::make_session() {
  std::optional<Network> network;
  Facts facts;
  StepOptions options;
  run_on_all_ranks(ranks_, [&] {
    network.emplace(make_replica_network());
    structure_sha256_ = structure_sha256(*network);
    facts = facts_of(*network);
    if (ranks_.rank() == 0)
      for (const std::string& note : network->notes()) spdlog::info("{}: {}", network->name(), note);
    network = with_outputs(std::move(*network), options_.loss_weights.size());
    if (options_.drop_path >= 0) network = with_drop_path(*network, static_cast<float>(options_.drop_path));
    prepare(*network);
    options = session_options();
  });
  require_same_data(ranks_, options_.model, facts);
  if (!options_.init.empty())
    require_same_data(ranks_, options_.init, {{"SHA-256 of the weights", initial_weights_sha256(*network)}});
  const RankGroups& groups = run_ranks_->groups();
  std::optional<PlannedStep> planned;
  if (run_ranks_->partitioned()) planned = plan_partition(*network, options, ranks_, groups, threads_);
  if (planned) plan_ = planned->plan;
  obey_signals();
  std::optional<CompiledSteps> steps;
  if (planned)
    run_on_all_ranks(ranks_, [&] {
      steps = stage_of_steps(planned->whole, plan_->placement, groups.stages->rank(), options);
    });
  else
    steps = compile_within_limit(*network, options, ranks_, groups);
  run_on_all_ranks(ranks_, [&] {
    session_ = std::make_unique<Session>(std::move(*steps), options, groups);
    if (options.input.kind == InputOptions::Kind::resident && session_->memory().has_images())
      dataset_->visit_images([&](std::int64_t first, const std::uint8_t* pixels, std::int64_t count) {
        if (signals_.received() != 0) throw ExitStatus{kRequeueStatus};
        session_->put_image(first, pixels, count);
      });
  });
  delivery_ = delivery_for(options.input, session_->memory());
  if (plan_) session_->connect();
  session_state_ = plan_ ? std::make_unique<SessionState>(*session_, planned->whole.train->graph,
                                                          options.optimizer, run_ranks_->replica_stages())
                         : std::make_unique<SessionState>(*session_);
}

int Trainer::run() {
  obey_signals();
  signals_.start_up_is_over();
  last_finished_ = Clock::now();
  while (step_ < total_steps_) {
    start_step(signals_.received() != 0);
    ++step_;
    const bool pause = evaluation_is_due() || checkpoint_is_due();
    finish_steps(pause ? 0 : session_->steps_ahead());
    if (stop_requested_) finish_steps(0);
    const bool stop = stop_requested_ && step_ < total_steps_;
    const bool better = evaluation_is_due() && evaluate();
    if (stop || better || checkpoint_is_due()) save_checkpoint(better);
    if (pause) last_finished_ = Clock::now();
    if (stop) {
      report_->message(
          fmt::format("stopped by a signal after step {}; --resume goes on from its checkpoint", step_));
      return kRequeueStatus;
    }
  }
  finish();
  return 0;
}

// A run that was resumed after its last step keeps its results.
void Trainer::finish() {
  if (report_->nothing_to_do()) {
    const std::int32_t has_summary = report_->has_summary() ? 1 : 0;  // as rank 0 sees the folder
    if (ranks_.all_reduce(ranks_.rank() == 0 ? has_summary : 0, comm::ReduceOp::max, "results") == 1)
      return report_->message("all steps were done before; nothing was changed");
    if (test_source_) evaluate();
  }
  const std::string sha256 = session_state_->parameters_sha256();
  const std::vector<RankTimes> times = gather_rank_times(ranks_, report_->rank_times());
  const PeakMemory peak = largest_peaks(ranks_, session_->memory().plan().total());
  run_on_all_ranks(ranks_, [&] { report_->finish(step_, sha256, times, peak); });
}

void Trainer::start_step(bool stop_requested) {
  const double waited = train_source_->wait_ms();
  environment_.set_step(step_);
  if (trace_) trace_->begin_step(step_);
  StepRecord& record = in_flight_.emplace_back();
  record.step = step_ + 1;
  record.learning_rate = schedule_.learning_rate_at(step_);
  // The last step of an epoch may have fewer parts, and its last part may be short.
  const std::int64_t part_batch = options_.global_batch / options_.accumulate;
  const std::int64_t first = step_ % steps_per_epoch_ * options_.global_batch;
  record.timing.images = std::min(options_.global_batch, dataset_->train_size() - first);
  const std::int64_t parts = (record.timing.images + part_batch - 1) / part_batch;
  record.parts_left = parts;
  session_->control().step = static_cast<std::uint64_t>(step_);
  session_->control().learning_rate = static_cast<float>(record.learning_rate);
  for (std::int64_t part = 0; part < parts; ++part) {
    if (part > 0) finish_steps(session_->steps_ahead());
    start_part(part, part == parts - 1, stop_requested);
  }
  record.timing.data_wait_ms = train_source_->wait_ms() - waited;
}

// Starts one part of the step that was begun last.
void Trainer::start_part(std::int64_t part, bool last, bool stop_requested) {
  const StepRecord& record = in_flight_.back();
  const auto requested = Clock::now();
  data::BatchLease batch = train_source_->next();
  if (trace_) trace_->loaded(requested);
  const std::int64_t samples = batch->global_valid;
  session_->load(std::move(batch));
  kernels::StepControl& control = session_->control();
  control.part = static_cast<std::int32_t>(part);
  control.share =
      static_cast<float>(static_cast<double>(samples) / static_cast<double>(record.timing.images));
  control.first_sample += static_cast<std::uint64_t>(part * (options_.global_batch / options_.accumulate));
  as_rank(environment_, record.step, [&] {
    if (last)
      session_->start_train_step(stop_requested);
    else
      session_->start_train_part();
  });
}

// Finishes steps until `left_in_flight` are left (with --accumulate, parts of steps). A step's time
// is that from the end of the previous step to its own end.
void Trainer::finish_steps(int left_in_flight) {
  while (session_->steps_in_flight() > left_in_flight) {
    StepRecord& first = in_flight_.front();
    first.metrics += as_rank(environment_, first.step, [&] { return session_->finish_step(); });
    first.timing.exposed_comm_ms += session_->exposed_comm_ms();
    if (--first.parts_left > 0) continue;
    StepRecord record = first;
    in_flight_.pop_front();
    const auto now = Clock::now();
    record.timing.step_ms = std::chrono::duration<double, std::milli>(now - last_finished_).count();
    last_finished_ = now;
    if (trace_) {
      trace_->end_step(record.step - 1, report_->plan().ranks);
      // No step pays for the time to write the file, unless a device computes meanwhile.
      if (session_->steps_in_flight() == 0) last_finished_ = Clock::now();
    }
    report_->step(record);
    if (options_.stop_on_divergence)
      run_on_all_ranks(ranks_, [&] { check_loss(record.metrics.loss(), record.step, record.learning_rate); });
    stop_requested_ = stop_requested_ || record.metrics.stop_requests > 0;
  }
}

bool Trainer::evaluation_is_due() const {
  if (!test_source_) return false;
  if (step_ == total_steps_) return true;
  return options_.eval_every > 0 && step_ % (options_.eval_every * steps_per_epoch_) == 0;
}

bool Trainer::checkpoint_is_due() const {
  const std::int64_t interval = options_.checkpoint_every_steps > 0
                                    ? options_.checkpoint_every_steps
                                    : options_.checkpoint_every_epochs * steps_per_epoch_;
  return step_ == total_steps_ || (interval > 0 && step_ % interval == 0);
}

bool Trainer::evaluate() {
  session_->average_states();
  const bool resident = options_.data_on_device;
  const auto test = [&] { return session_->evaluate(*test_source_, resident ? dataset_->train_size() : 0); };
  const StepMetrics sum = test();
  std::optional<StepMetrics> average;
  if (options_.ema > 0) {
    session_->exchange_averages();
    average = test();
    session_->exchange_averages();
  }
  report_->evaluation(step_, sum, average);
  const StepMetrics& judged = average ? *average : sum;
  const double accuracy = judged.top1 / judged.samples;
  const bool better = accuracy > best_accuracy_;
  best_accuracy_ = std::max(best_accuracy_, accuracy);
  return better;
}

kernels::Shape Trainer::input_shape() const {
  const data::ImageShape image = dataset_->input_shape();
  return {image.channels, image.height, image.width};
}

}  // namespace convoy::app
