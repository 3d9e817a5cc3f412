#include "app/training/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/training/class_order.h"
#include "app/training/report/bottleneck.h"
#include "app/training/resumed_options.h"
#include "app/training/run_network.h"

namespace convoy::app {
namespace {

kernels::Shape input_shape(const Dataset& dataset) {
  const data::ImageShape image = dataset.input_shape();
  return {image.channels, image.height, image.width};
}

}  // namespace

Training::Training(TrainOptions options, const comm::Communicator& ranks, const Dataset& dataset,
                   std::int64_t steps_per_epoch, std::string structure_sha256)
    : options_(std::move(options)),
      ranks_(ranks),
      dataset_(dataset),
      steps_per_epoch_(steps_per_epoch),
      structure_sha256_(std::move(structure_sha256)),
      schedule_(make_schedule(options_, steps_per_epoch)),
      last_loss_(std::numeric_limits<double>::quiet_NaN()),
      last_accuracy_(std::numeric_limits<double>::quiet_NaN()) {}

// Rank 0 locks the folder. Rank 0 opens its checkpoints; if the run resumes, every rank opens them,
// because every rank loads one. With --overwrite the checkpoints of the replaced run are removed,
// so that a later --resume cannot load them.
void Training::open_folder() {
  if (ranks_.rank() == 0) lock_ = std::make_unique<RunLock>(options_.out);
  if (ranks_.rank() != 0 && !options_.resume) return;
  const auto folder = std::filesystem::path(options_.out) / "checkpoint";
  checkpoints_ = std::make_unique<CheckpointFolder>(folder, static_cast<int>(options_.keep_checkpoints));
  if (options_.overwrite) checkpoints_->clear();
}

void Training::bind(std::unique_ptr<SessionState> state, bool captures) {
  state_ = std::move(state);
  captures_ = captures;
}

void Training::start_report(const RunPlan& plan, const Session& session, RunReport::Output output) {
  report_ = std::make_unique<RunReport>(options_, plan, dataset_, session, output);
}

void Training::describe(CheckpointState& state, std::int64_t step) const {
  state.model = options_.model;
  state.classes = dataset_.classes();
  state.class_names = dataset_.info().classes;
  state.input_shape = input_shape(dataset_);
  state.epoch = step / steps_per_epoch_;
  state.step = step;
  state.sample = step % steps_per_epoch_ * options_.global_batch;
  state.seed = static_cast<std::uint64_t>(options_.seed);
  state.best_accuracy = best_accuracy_;
  state.mean = dataset_.info().mean;
  state.std = dataset_.info().std;
  auto options = to_json(options_);
  options["train-images"] = dataset_.train_size();
  if (const std::string labels = dataset_.labels_sha256(data::Split::train); !labels.empty())
    options["train-labels-sha256"] = labels;
  if (!structure_sha256_.empty()) options["model-structure-sha256"] = structure_sha256_;
  state.options_json = json_text(options);
}

void Training::save_checkpoint(std::int64_t step, Keep keep, bool last) {
  CheckpointState state;
  if (captures_) state_->capture(state);
  if (last) digest_step_ = step;
  const auto write = [&] {
    if (ranks_.rank() != 0) return;
    std::future<void> hashed;
    if (last)
      hashed = std::async(std::launch::async, [&] { digest_ = app::parameters_sha256(state.parameters); });
    describe(state, step);
    if (keep == Keep::best)
      checkpoints_->save_best(state);
    else
      checkpoints_->save(state, keep == Keep::newest_and_best);
    if (last) hashed.get();
  };
  run_on_all_ranks(ranks_, write, "writing of the checkpoint");
}

// Checks that images and classes are those of the run that wrote the checkpoint. Labels are not
// compared if they were renumbered, because a file with another order of classes may also have
// another order of images.
void Training::check_data(Dataset& dataset, const CheckpointState& state,
                          const std::filesystem::path& path) const {
  const auto saved = nlohmann::json::parse(state.options_json);
  const std::string mapped = match_classes(dataset, options_.data, state, path);
  if (!mapped.empty() && ranks_.rank() == 0) spdlog::warn("{}", mapped);
  const std::string labels = dataset.labels_sha256(data::Split::train);
  const std::int64_t images = saved.value("train-images", dataset.train_size());
  const auto refuse = [&](const std::string& difference) {
    throw std::runtime_error(fmt::format("{}: not the images that {} was trained on: {}", options_.data,
                                         path.string(), difference));
  };
  if (images != dataset.train_size())
    refuse(fmt::format("found {} training images, expected {}", dataset.train_size(), images));
  for (const auto& [name, found, expected] :
       {std::tuple("mean", dataset.info().mean, state.mean), {"std", dataset.info().std, state.std}})
    if (found != expected)
      refuse(
          fmt::format("found {} {}, expected {}", name, fmt::join(found, ", "), fmt::join(expected, ", ")));
  if (mapped.empty() && !labels.empty() && saved.value("train-labels-sha256", labels) != labels)
    refuse("found other labels");
}

std::int64_t Training::newest_checkpoint(std::int64_t at_most) const {
  const auto path = checkpoints_->latest(ranks_.rank() == 0, at_most);
  return path ? CheckpointFolder::step_in_name(*path) : 0;
}

void Training::resume(Dataset& dataset, std::int64_t at_most) {
  const auto path = checkpoints_->latest(false, at_most);
  if (!path) return;
  const CheckpointState state = load_checkpoint(*path);
  const TrainOptions saved = options_from_json(nlohmann::json::parse(state.options_json), path->string());
  check_resumed_options(options_, saved);
  check_data(dataset, state, *path);
  if (state.step > schedule_.total_steps)
    throw UsageError(fmt::format("{}: found {} steps in all, but {} is of step {}",
                                 options_.steps > 0 ? "--steps" : "--epochs", schedule_.total_steps,
                                 path->string(), state.step));
  const std::string jump = rate_jump(options_, saved, state.step, steps_per_epoch_);
  if (!jump.empty() && ranks_.rank() == 0) spdlog::warn("{}", jump);
  check_structure(state, *path, structure_sha256_);
  state_->restore(state, *path, options_.model, dataset.classes(), input_shape(dataset));
  best_accuracy_ = state.best_accuracy;
}

void Training::finish_part(const StartedStep& step, const StepMetrics& metrics) {
  parts_ += metrics;
  if (step.parts_left > 1) return;
  StepRecord record;
  record.step = step.step;
  record.metrics = std::exchange(parts_, {});
  record.learning_rate = schedule_.learning_rate_at(step.step - 1);
  record.timing = step.timing;
  last_loss_ = record.metrics.loss();
  report_->step(record);
  if (options_.stop_on_divergence)
    run_on_all_ranks(ranks_, [&] { check_loss(last_loss_, record.step, record.learning_rate); });
}

bool Training::evaluated(std::int64_t step, const StepMetrics& test,
                         const std::optional<StepMetrics>& average) {
  report_->evaluation(step, test, average);
  const StepMetrics& judged = average ? *average : test;
  last_accuracy_ = judged.top1 / judged.samples;
  const bool better = last_accuracy_ > best_accuracy_;
  best_accuracy_ = std::max(best_accuracy_, last_accuracy_);
  return better;
}

bool Training::keeps_results() const {
  if (!report_->nothing_to_do()) return false;
  // Only rank 0 needs to see the folder, so it tells the other ranks whether there is a
  // summary.json.
  const std::int32_t has_summary = report_->has_summary() ? 1 : 0;
  return ranks_.all_reduce(ranks_.rank() == 0 ? has_summary : 0, comm::ReduceOp::max, "results") == 1;
}

void Training::finish(std::int64_t step, std::int64_t arena_bytes) {
  parameters_sha256_ = digest_step_ == step ? digest_ : state_->parameters_sha256();
  const std::vector<RankTimes> times = gather_rank_times(ranks_, report_->rank_times());
  const PeakMemory peak = largest_peaks(ranks_, arena_bytes);
  if (keeps_results()) return;
  run_on_all_ranks(ranks_, [&] { report_->finish(step, parameters_sha256_, times, peak); });
}

}  // namespace convoy::app
