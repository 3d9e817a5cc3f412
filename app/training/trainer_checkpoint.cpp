// The trainer's checkpoints: what goes into one, who writes it, and how a run goes on from it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "app/json_text.h"
#include "app/runtime/agreement.h"
#include "app/training/session_checkpoint.h"
#include "app/training/trainer.h"

namespace convoy::app {

// Every rank that resumes looks into the folder, so that all resume from the same step or none does. A new run puts what
// an earlier one left aside: resumed later by mistake, it would pass for this run's.
void Trainer::open_checkpoints() {
  if (ranks_.rank() == 0) lock_ = std::make_unique<RunLock>(options_.out);
  if (ranks_.rank() != 0 && !options_.resume) return;
  const auto folder = std::filesystem::path(options_.out) / "checkpoint";
  if (!options_.resume)
    if (const auto aside = CheckpointFolder::put_aside(folder))
      spdlog::warn("{}: checkpoints of an earlier run are now in {}; --resume would have gone on from them",
                   options_.out, aside->string());
  checkpoints_ = std::make_unique<CheckpointFolder>(folder, static_cast<int>(options_.keep_checkpoints));
}

void Trainer::capture_session(CheckpointState& state) const {
  if (!partitioned_)
    capture(*session_, state);
  else if (run_ranks_->replica() == 0)
    partitioned_->capture(*session_, state);
}

void Trainer::restore_session(const CheckpointState& state, const std::filesystem::path& path) {
  if (partitioned_)
    partitioned_->restore(*session_, state, path, options_.model, dataset_->classes(), input_shape());
  else
    restore(*session_, state, path, options_.model, dataset_->classes(), input_shape());
}

std::string Trainer::parameters_hash() const {
  return partitioned_ ? partitioned_->parameters_sha256(*session_) : parameters_sha256(*session_);
}

void Trainer::describe_run(CheckpointState& state) const {
  state.model = options_.model;
  state.classes = dataset_->classes();
  state.input_shape = input_shape();
  state.epoch = step_ / steps_per_epoch_;
  state.step = step_;
  state.sample = step_ % steps_per_epoch_ * options_.global_batch;
  state.seed = static_cast<std::uint64_t>(options_.seed);
  state.best_accuracy = best_accuracy_;
  state.mean = dataset_->info().mean;
  state.std = dataset_->info().std;
  auto options = to_json(options_);
  options["train-images"] = dataset_->train_size();
  state.options_json = json_text(options);
}

// Parameters are the same on every replica: rank 0 writes them. The others wait, for --timeout at most.
void Trainer::save_checkpoint(bool best) {
  session_->average_states();
  CheckpointState state;
  if (partitioned_ || ranks_.rank() == 0) capture_session(state);
  const auto write = [&] {
    if (ranks_.rank() != 0) return;
    describe_run(state);
    checkpoints_->save(state, best);
  };
  together(ranks_, write, "writing of the checkpoint");
}

bool Trainer::resume() {
  std::int64_t step = 0;
  together(ranks_, [&] {
    const auto path = checkpoints_->latest(ranks_.rank() == 0);
    if (!path) return;
    const CheckpointState state = load_checkpoint(*path);
    const auto options = nlohmann::json::parse(state.options_json);
    check_resumed_options(options_, options);
    if (options.value("train-images", dataset_->train_size()) != dataset_->train_size() ||
        state.mean != dataset_->info().mean || state.std != dataset_->info().std)
      throw std::runtime_error(
          fmt::format("{}: not the images that {} was trained on", options_.data, path->string()));
    if (state.step > total_steps_)
      throw UsageError(fmt::format("{}: found {} steps in all, but {} is of step {}",
                                   options_.steps > 0 ? "--steps" : "--epochs", total_steps_, path->string(),
                                   state.step));
    restore_session(state, *path);
    step = state.step;
    best_accuracy_ = state.best_accuracy;
  });
  const std::int64_t first = ranks_.all_reduce(step, comm::ReduceOp::min, "resumed step");
  const std::int64_t last = ranks_.all_reduce(step, comm::ReduceOp::max, "resumed step");
  if (first != last)
    throw std::runtime_error(
        fmt::format("{}: ranks see different checkpoints, of steps {} to {}; --out must be a folder "
                    "that all hosts share",
                    options_.out, first, last));
  step_ = step;
  return step > 0;
}

}  // namespace convoy::app
