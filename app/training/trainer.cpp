// Runs the steps of a trainer: of one training, or of several members (trainings that run
// together).
#include "app/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/training/report/bottleneck.h"

namespace convoy::app {
namespace {

// Calls `body` and adds the rank and the step to its error. A device may fail on one rank only, and
// the message must say on which.
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

}  // namespace

int Trainer::run() {
  obey_signals();
  signals_.start_up_is_over();
  last_finished_ = Clock::now();
  while (step_ < total_steps_ && all_live_ > 0) {
    if (members_) agree_to_go_on();
    if (all_live_ == 0) break;
    start_step(!members_ && signals_.received() != 0);
    ++step_;
    const bool pause = evaluation_is_due() || checkpoint_is_due();
    if (sessions_) finish_steps(pause ? 0 : sessions_->steps_ahead());
    if (stop_requested_ && sessions_) finish_steps(0);
    const bool stop = stop_requested_ && step_ < total_steps_;
    std::ranges::fill(better_, 0);
    const bool better = evaluation_is_due() && evaluate();
    if (halving_is_due() && !stop && halve()) continue;
    if (stop || checkpoint_is_due() || (better && !members_))
      save_checkpoints(false);
    else if (better)
      save_checkpoints(true);
    if (pause) last_finished_ = Clock::now();
    if (stop) {
      say(fmt::format("stopped by a signal after step {}; --resume goes on from its checkpoint", step_));
      if (members_) note_results();
      return kRequeueStatus;
    }
  }
  if (sessions_) finish_steps(0);
  finish();
  return 0;
}

// Writes the results of the run. If the run was resumed after its last step and its results are
// still there, they stay as they are.
void Trainer::finish() {
  if (members_) return finish_members();
  Training& training = *trainings_[0];
  if (training.report().nothing_to_do()) {
    if (training.keeps_results())
      return training.report().message("all steps were done before; nothing was changed");
    if (!test_sources_.empty()) evaluate();
  }
  training.finish(step_, arena_bytes());
}

double Trainer::data_wait_ms() const {
  double sum = 0;
  for (const Source& source : train_sources_) sum += source.batches->wait_ms();
  return sum;
}

void Trainer::start_step(bool stop_requested) {
  const double waited = data_wait_ms();
  environment_.set_step(step_);
  if (trace_) trace_->begin_step(step_);
  if (std::ranges::count(live_, 1) == 0) return;
  StartedStep& started = in_flight_.emplace_back();
  started.step = step_ + 1;
  // The last step of an epoch may have fewer images. It then has fewer parts, and the last part may
  // be short.
  const std::int64_t part_batch = options_.global_batch / options_.accumulate;
  const std::int64_t first = step_ % steps_per_epoch_ * options_.global_batch;
  started.timing.images = std::min(options_.global_batch, dataset_->train_size() - first);
  const std::int64_t parts = (started.timing.images + part_batch - 1) / part_batch;
  started.parts_left = parts;
  for_live([&](std::size_t i) {
    kernels::StepControl& control = sessions_->control(static_cast<int>(i));
    control.step = static_cast<std::uint64_t>(step_);
    control.learning_rate = static_cast<float>(trainings_[i]->learning_rate_at(step_));
  });
  for (std::int64_t part = 0; part < parts; ++part) {
    if (part > 0) finish_steps(sessions_->steps_ahead());
    start_part(part, part == parts - 1, stop_requested);
  }
  started.timing.data_wait_ms = data_wait_ms() - waited;
}

// Starts one part of the step that start_step() has begun.
void Trainer::start_part(std::int64_t part, bool last, bool stop_requested) {
  const auto requested = Clock::now();
  load_batches(part);
  if (trace_) trace_->loaded(requested);
  as_rank(environment_, in_flight_.back().step,
          [&] { sessions_->start(last ? StepKind::train : StepKind::train_part, last && stop_requested); });
}

void Trainer::load_batches(std::int64_t part) {
  const auto images = static_cast<double>(in_flight_.back().timing.images);
  for (const Source& source : train_sources_) {
    if (std::ranges::none_of(source.members, [&](int i) { return live_[static_cast<std::size_t>(i)] != 0; }))
      continue;
    data::BatchLease batch = source.batches->next();
    const std::int64_t samples = batch->global_valid;
    sessions_->load(std::move(batch), source.members);
    for (const int member : source.members) {
      kernels::StepControl& control = sessions_->control(member);
      control.part = static_cast<std::int32_t>(part);
      control.share = static_cast<float>(static_cast<double>(samples) / images);
      control.first_sample +=
          static_cast<std::uint64_t>(part * (options_.global_batch / options_.accumulate));
    }
  }
}

// Finishes started steps until at most `left_in_flight` are left. With --accumulate it counts parts
// instead of steps.
void Trainer::finish_steps(int left_in_flight) {
  while (sessions_->steps_in_flight() > left_in_flight) {
    StartedStep& first = in_flight_.front();
    const StepResult result = as_rank(environment_, first.step, [&] { return sessions_->finish_step(); });
    first.timing.exposed_comm_ms += result.exposed_comm_ms;
    const StartedStep step = first;
    if (step.parts_left > 1) {
      --first.parts_left;
      finish_part(step, result.metrics);
      continue;
    }
    in_flight_.pop_front();
    finish_part(timed(step), result.metrics);
    stop_requested_ = stop_requested_ || result.metrics[0].stop_requests > 0;
  }
}

// Adds to the finished step its time, which runs from the end of the previous step to its own end.
StartedStep Trainer::timed(StartedStep step) {
  const auto now = Clock::now();
  step.timing.step_ms = std::chrono::duration<double, std::milli>(now - last_finished_).count();
  last_finished_ = now;
  if (streams_) choose_streams(step.timing.step_ms);
  if (trace_) {
    trace_->end_step(step.step - 1, trainings_[0]->report().plan().ranks);
    // end_step() may have written the trace file. If no other step was running meanwhile, do not
    // count that time in the next step.
    if (sessions_->steps_in_flight() == 0) last_finished_ = Clock::now();
  }
  return step;
}

void Trainer::finish_part(const StartedStep& step, std::span<const StepMetrics> metrics) {
  double loss = 0;
  std::int64_t losses = 0;
  for_live([&](std::size_t i) {
    try {
      trainings_[i]->finish_part(step, metrics[i]);
      loss += trainings_[i]->last_loss(), ++losses;
    } catch (const DivergenceError& error) {
      if (!members_) throw;
      retire(i, step.step, error.what());
    }
  });
  if (!progress_ || step.parts_left > 1 || losses == 0) return;
  StepTiming all = step.timing;
  all.images *= all_live_;
  const double rate = rate_.add(all);
  progress_->step(
      {step.step, loss / static_cast<double>(losses), trainings_[0]->learning_rate_at(step.step - 1), rate});
  if (step.step % options_.log_every == 0) rate_.restart();
}

bool Trainer::evaluation_is_due() const {
  if (dataset_->test_size() == 0) return false;
  if (step_ == total_steps_ || halving_is_due()) return true;
  return options_.eval_every > 0 && step_ % (options_.eval_every * steps_per_epoch_) == 0;
}

// Returns the steps between two checkpoints; 0 if there is only the one at the end.
std::int64_t Trainer::checkpoint_interval() const {
  return options_.checkpoint_every_steps > 0 ? options_.checkpoint_every_steps
                                             : options_.checkpoint_every_epochs * steps_per_epoch_;
}

bool Trainer::checkpoint_is_due() const {
  const std::int64_t interval = checkpoint_interval();
  return step_ == total_steps_ || (interval > 0 && step_ % interval == 0);
}

bool Trainer::halving_is_due() const {
  return members_ && options_.halving > 0 && step_ < total_steps_ && all_live_ > 1 &&
         step_ % (options_.halving * steps_per_epoch_) == 0;
}

bool Trainer::evaluate() {
  std::int32_t better = 0;
  if (sessions_) {
    sessions_->average_states();
    std::vector<JoinedSessions::MemberBatches> groups;
    for (const Source& source : test_sources_) groups.push_back({source.batches.get(), source.members});
    const std::int64_t first = options_.data_on_device ? dataset_->train_size() : 0;
    const std::vector<StepMetrics> sums = sessions_->evaluate(groups, first);
    const auto has_average = [&](std::size_t i) { return options_of(i).ema > 0; };
    std::vector<StepMetrics> averages;
    for (std::size_t i = 0; i < own_.size() && averages.empty(); ++i)
      if (has_average(i)) averages = sessions_->evaluate(groups, first, true);
    for_live([&](std::size_t i) {
      const auto average = has_average(i) ? std::optional(averages[i]) : std::nullopt;
      better_[i] = trainings_[i]->evaluated(step_, sums[i], average) ? 1 : 0;
      better |= better_[i];
    });
  }
  if (!members_) return better != 0;
  note_results();
  return world_.all_reduce(better, comm::ReduceOp::max, "better members") != 0;
}

// Saves checkpoints of all members together, so that all can resume from the same step. With
// `only_best`, saves only best.h5 of each member that has become better.
void Trainer::save_checkpoints(bool only_best) {
  using Keep = Training::Keep;
  const auto save = [&] {
    for_live([&](std::size_t i) {
      if (only_best && !better_[i]) return;
      trainings_[i]->save_checkpoint(step_,
                                     only_best    ? Keep::best
                                     : better_[i] ? Keep::newest_and_best
                                                  : Keep::newest,
                                     step_ == total_steps_);
    });
  };
  if (sessions_) sessions_->average_states();
  members_ ? run_on_all_ranks(world_, save, "writing of the checkpoints") : save();
}

// Passes the time of a step to streams_, which tries several numbers of GPU streams for the shapes
// of members (stream_choice.h). If the number changes, distributes the sessions over the streams
// again.
void Trainer::choose_streams(double step_ms) {
  if (!streams_->finished(step_ms)) return;
  std::vector<double> work;
  for (const Shape& shape : shapes_) work.push_back(shape.work);
  sessions_->arrange(streams_->streams(), work);
  if (streams_->done()) say(streams_->text());
}

void Trainer::say(const std::string& line) {
  if (!members_) return trainings_[0]->report().message(line);
  if (progress_) progress_->message(line);
}

}  // namespace convoy::app
