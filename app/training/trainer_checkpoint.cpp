// The trainer's checkpoints: their content, who writes them, and how a run resumes from one.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/training/class_order.h"
#include "app/training/resumed_options.h"
#include "app/training/run_network.h"
#include "app/training/trainer.h"

namespace convoy::app {

// Refuses early, before anything takes time. If the earlier run is still active, its lock gives the
// error.
void Trainer::refuse_second_run() const {
  if (ranks_.rank() != 0 || options_.resume || options_.overwrite || !holds_a_run(options_.out)) return;
  const RunLock lock(options_.out);
  throw UsageError(
      fmt::format("--out {}: found an earlier run's results there, expected --resume to go on, --overwrite "
                  "to replace them or "
                  "another folder",
                  options_.out));
}

// Every rank of a run that resumes reads the folder, so that all resume from the same step.
// --overwrite removes the checkpoints of the replaced run, which a later --resume would take for
// its own.
void Trainer::open_checkpoints() {
  if (ranks_.rank() == 0) lock_ = std::make_unique<RunLock>(options_.out);
  if (ranks_.rank() != 0 && !options_.resume) return;
  const auto folder = std::filesystem::path(options_.out) / "checkpoint";
  checkpoints_ = std::make_unique<CheckpointFolder>(folder, static_cast<int>(options_.keep_checkpoints));
  if (options_.overwrite) checkpoints_->clear();
}

void Trainer::describe_run(CheckpointState& state) const {
  state.model = options_.model;
  state.classes = dataset_->classes();
  state.class_names = dataset_->info().classes;
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
  if (const std::string labels = dataset_->labels_sha256(data::Split::train); !labels.empty())
    options["train-labels-sha256"] = labels;
  if (!structure_sha256_.empty()) options["model-structure-sha256"] = structure_sha256_;
  state.options_json = json_text(options);
}

// Rank 0 writes the parameters, which are the same on all replicas. The others wait, at most
// --timeout.
void Trainer::save_checkpoint(bool best) {
  session_->average_states();
  CheckpointState state;
  if (run_ranks_->replica() == 0) session_state_->capture(state);
  const auto write = [&] {
    if (ranks_.rank() != 0) return;
    describe_run(state);
    checkpoints_->save(state, best);
  };
  run_on_all_ranks(ranks_, write, "writing of the checkpoint");
}

// Checks that images and classes are those of the first run. Labels are not compared if they were
// renumbered: a file with another order of classes may have another order of images.
void Trainer::check_resumed_data(const CheckpointState& state, const std::filesystem::path& path) {
  const auto saved = nlohmann::json::parse(state.options_json);
  const std::string mapped = match_classes(*dataset_, options_.data, state, path);
  if (!mapped.empty() && ranks_.rank() == 0) spdlog::warn("{}", mapped);
  const std::string labels = dataset_->labels_sha256(data::Split::train);
  const bool other_labels =
      mapped.empty() && !labels.empty() && saved.value("train-labels-sha256", labels) != labels;
  if (saved.value("train-images", dataset_->train_size()) != dataset_->train_size() ||
      state.mean != dataset_->info().mean || state.std != dataset_->info().std || other_labels)
    throw std::runtime_error(
        fmt::format("{}: not the images that {} was trained on", options_.data, path.string()));
}

bool Trainer::resume() {
  std::int64_t step = 0;
  run_on_all_ranks(ranks_, [&] {
    const auto path = checkpoints_->latest(ranks_.rank() == 0);
    if (!path) return;
    const CheckpointState state = load_checkpoint(*path);
    const TrainOptions saved = options_from_json(nlohmann::json::parse(state.options_json), path->string());
    check_resumed_options(options_, saved);
    check_resumed_data(state, *path);
    if (state.step > total_steps_)
      throw UsageError(fmt::format("{}: found {} steps in all, but {} is of step {}",
                                   options_.steps > 0 ? "--steps" : "--epochs", total_steps_, path->string(),
                                   state.step));
    const std::string jump = rate_jump(options_, saved, state.step, steps_per_epoch_);
    if (!jump.empty() && ranks_.rank() == 0) spdlog::warn("{}", jump);
    check_structure(state, *path, structure_sha256_);
    session_state_->restore(state, *path, options_.model, dataset_->classes(), input_shape());
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
