// Sets the trainer up before the first step: ranks, data, and the trainings with their folders.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/compile/fit_memory.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/training/rank_facts.h"
#include "app/training/rank_setup.h"
#include "app/training/trainer.h"

namespace convoy::app {
namespace {

// Warns if a global batch is larger than the training set. The run is valid, but a step has fewer
// images than requested, while the learning rate may have been scaled for the requested number.
void warn_of_short_steps(std::int64_t global_batch, std::int64_t train_images) {
  if (global_batch > train_images)
    spdlog::warn("--global-batch: found {}, but there are {} training images; a step sees each of them once",
                 global_batch, train_images);
}

// Returns, as one text, the values of the options that decide which samples a batch has and how
// they are augmented. Members with the same text share batches.
std::string data_key(const TrainOptions& options) {
  static constexpr std::string_view kKeys[] = {
      "seed",         "crop-padding", "cutout",         "flip",  "random-resized-crop",
      "color-jitter", "auto-augment", "random-erasing", "mixup", "cutmix"};
  const nlohmann::json values = to_json(options);
  std::string key;
  for (const std::string_view name : kKeys) key += values.at(std::string(name)).dump() + " ";
  return key;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, const RunHost& host, std::vector<TrainOptions> members)
    : options_(options),
      host_(host),
      environment_(host.environment),
      signals_(host.stop),
      world_(environment_.world()),
      ranks_(&world_) {
  run_on_all_ranks(world_, [&] {
    if (members.empty()) return check_train_options(options_, world_.size());
    for (const TrainOptions& member : members) check_train_options(member, 1);
    members_ = std::make_unique<Members>(std::move(members));
    options_ = members_->options(0);
    options_.out = options.out;
    options_.halving = options.halving;
  });
  check_ranks();
  run_on_all_ranks(world_, [&] { refuse_second_run(); });
  threads_ = host_.gate != nullptr ? host_.threads : use_cores(environment_, options_.threads);
  obey_signals();
  if (members_ && world_.size() > 1) ranks_ = &solo_.emplace(world_.split(world_.rank(), 0, "members"));
  run_ranks_ = std::make_unique<RunRanks>(*ranks_, static_cast<int>(options_.partition), options_.backend);
  open_data();
  if (members_) {
    run_on_all_ranks(world_, [&] {
      if (world_.rank() == 0) lock_ = std::make_unique<RunLock>(options_.out);
      if (world_.rank() == 0 && options_.overwrite)
        std::filesystem::remove_all(std::filesystem::path(options_.out) / "members");
      if (options_.resume) members_->read(total_steps_);
    });
    if (world_.rank() == 0)
      progress_ = std::make_unique<Progress>(
          host_.output,
          ProgressOptions{terminal_of(*host_.output), options_.log_every, total_steps_, steps_per_epoch_});
  }
  make_trainings();
  if (world_.rank() == 0) warn_of_short_steps(options_.global_batch, dataset_->train_size());
  if (!options_.trace.empty())
    trace_ = std::make_unique<Trace>(options_.trace, *shapes_[0].session, world_, step_, total_steps_);
  if (host_.planned) host_.planned(planned_work());
}

PlannedWork Trainer::planned_work() const {
  PlannedWork work;
  work.steps = (total_steps_ - step_) * options_.accumulate;
  const std::int64_t between = checkpoint_interval();
  if (between > 0) work.checkpoints = (total_steps_ - 1) / between - step_ / between;
  for (const Shape& shape : shapes_) work.checkpoint_bytes += shape.session->tensors().checkpoint_bytes();
  if (test_sources_.empty()) return work;
  // Only `convoy share` uses this number, and all members of its jobs share one compiled step.
  work.batch_steps = evaluated_batch_steps(shapes_[0].session->steps(), shapes_[0].step);
  const std::int64_t interval = options_.eval_every * steps_per_epoch_;
  std::int64_t tests = step_ < total_steps_ ? 1 : 0;  // the test at the end
  if (interval > 0) tests += (total_steps_ - 1) / interval - step_ / interval;
  for (const Source& source : test_sources_)
    work.evaluated_batches += tests * source.batches->steps_per_epoch() * (options_.ema > 0 ? 2 : 1);
  return work;
}

void Trainer::check_ranks() {
  Facts facts = facts_of(options_);
  if (members_)
    for (int member = 0; member < members_->size(); ++member)
      facts.emplace_back(fmt::format("--members: member {}", member + 1),
                         json_text(to_json(members_->options(member))));
  require_same_flags(world_, facts);
}

void Trainer::open_data() {
  dataset_ = std::make_unique<Dataset>(options_, run_ranks_->replicas(), threads_);
  require_same_data(world_, options_.data, facts_of(*dataset_, options_, run_ranks_->replicas()));
  obey_signals();
  if (dataset_->train_size() == 0)
    throw std::runtime_error(fmt::format("{}: no training images", options_.data));
  if (options_.halving > 0 && dataset_->test_size() == 0)
    throw std::runtime_error(
        fmt::format("{}: no test images, by which --halving judges members", options_.data));
  steps_per_epoch_ = (dataset_->train_size() + options_.global_batch - 1) / options_.global_batch;
  total_steps_ = total_steps(options_, steps_per_epoch_);
  run_on_all_ranks(world_, [&] {
    make_schedule(options_, steps_per_epoch_);
    for (int member = 0; members_ && member < members_->size(); ++member) {
      make_schedule(members_->options(member), steps_per_epoch_);
      dataset_->check_augmentation(members_->options(member));
    }
  });
}

// Returns the data of a member. The seed determines synthetic images, so members with different
// seeds have different data.
Dataset& Trainer::dataset_of(const TrainOptions& options) {
  if (data_source(options.data) == DataSource::file || options.seed == options_.seed) return *dataset_;
  std::unique_ptr<Dataset>& own = synthetic_[options.seed];
  if (!own) own = std::make_unique<Dataset>(options, *ranks_, threads_);
  return *own;
}

// Makes the sessions and the trainings of this rank, and restores the state of the step to resume
// from.
void Trainer::make_trainings() {
  make_shapes();
  live_.assign(own_.size(), 1);
  better_.assign(own_.size(), 0);
  all_live_ = members_ ? std::ssize(members_->running()) : 1;
  make_sessions();
  run_on_all_ranks(world_, [&] {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      TrainOptions options = options_of(i);
      options.resume = options_.resume, options.overwrite = options_.overwrite;
      trainings_.push_back(std::make_unique<Training>(options, *ranks_, dataset_of(options_of(i)),
                                                      steps_per_epoch_, shape_of(i).structure_sha256));
      trainings_[i]->open_folder();
    }
  });
  for (std::size_t i = 0; i < own_.size(); ++i)
    trainings_[i]->bind(std::move(states_[i]), run_ranks_->replica() == 0);
  streams_.reset();
  if (shapes_.size() > 1 && options_.backend == kernels::Backend::cuda)
    streams_.emplace(static_cast<int>(shapes_.size()));
  resume();
  obey_signals();
  start_reports();
  start_sources();
}

void Trainer::start_reports() {
  const std::vector<RankPlace> places = places_of(environment_, *ranks_);
  const std::int64_t most = world_.all_reduce(std::ssize(own_), comm::ReduceOp::max, "members of a rank");
  run_on_all_ranks(world_, [&] {
    RunPlan plan{places,
                 threads_,
                 steps_per_epoch_,
                 total_steps_,
                 resumed_ > 0 ? std::optional(step_) : std::nullopt,
                 plan_,
                 0,
                 {},
                 {},
                 "",
                 memory_uses(),
                 host_.output};
    if (members_)
      plan.members = fmt::format(
          "{}{} over {} rank{}, at most {} each; they differ in {}. Below is the first", all_live_,
          members_->shapes().size() > 1 ? fmt::format(" of {} shapes", members_->shapes().size()) : "",
          world_.size(), world_.size() == 1 ? "" : "s", most, fmt::join(members_->differing(), ", "));
    using Output = RunReport::Output;
    const Output alone = world_.rank() == 0 ? Output::all : Output::none;
    for (std::size_t i = 0; i < trainings_.size(); ++i) {
      const Shape& shape = shape_of(i);
      plan.frozen_parameters = shape.frozen_parameters;
      plan.initial_weights = shape.initial_weights;
      plan.lanes = shape.lanes ? shape.lanes->text() : "";
      trainings_[i]->start_report(plan, *shape.session, members_ ? Output::files : alone);
    }
    if (members_ && world_.rank() == 0) {
      if (sessions_ && !halved_)
        trainings_[0]->report().print_configuration(*dataset_, sessions_->session_of(0));
      members_->write();
    }
  });
}

const TrainOptions& Trainer::options_of(std::size_t own) const {
  return members_ ? members_->options(own_.at(own)) : options_;
}

const Trainer::Shape& Trainer::shape_of(std::size_t own) const {
  const auto after = std::ranges::upper_bound(shapes_, own, {}, &Shape::first);
  return *std::prev(after);
}

// Ends the process if any rank got a signal. Nothing is saved, because no step has run yet.
// Collective, so that all ranks end together, although signals reach them at different times.
void Trainer::obey_signals() const {
  const std::int32_t received = signals_.received() != 0 ? 1 : 0;
  if (world_.all_reduce(received, comm::ReduceOp::max, "signals during the start-up") == 0) return;
  if (world_.rank() == 0 && host_.gate == nullptr) fmt::print(stderr, "convoy: {}\n", kStoppedEarly);
  throw ExitStatus{kRequeueStatus};
}

// Refuses a folder with results before the run spends time on anything else. If the earlier run is
// still active, RunLock throws an error that says so.
void Trainer::refuse_second_run() const {
  if (world_.rank() != 0 || options_.resume || options_.overwrite || !holds_a_run(options_.out)) return;
  const RunLock lock(options_.out);
  throw UsageError(
      fmt::format("--out {}: found an earlier run's results there, expected --resume to go on, --overwrite "
                  "to replace them or "
                  "another folder",
                  options_.out));
}

std::vector<std::vector<int>> Trainer::data_groups() const {
  std::vector<std::vector<int>> groups;
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto [at, inserted] = group_of.emplace(data_key(options_of(i)), groups.size());
    if (inserted) groups.emplace_back();
    groups[at->second].push_back(static_cast<int>(i));
  }
  return groups;
}

void Trainer::start_sources() {
  const data::BatchPosition start{step_ / steps_per_epoch_, step_ % steps_per_epoch_ * options_.accumulate};
  const std::vector<std::vector<int>> groups = data_groups();
  const int threads = std::max(threads_ / std::max(static_cast<int>(groups.size()), 1), 1);
  std::map<const Dataset*, std::vector<int>> tested;
  for (const std::vector<int>& group : groups) {
    const TrainOptions& options = options_of(static_cast<std::size_t>(group[0]));
    const Dataset& dataset = dataset_of(options);
    train_sources_.push_back({dataset.train(delivery_, start, options, threads), group});
    std::vector<int>& members = tested[&dataset];
    members.insert(members.end(), group.begin(), group.end());
  }
  if (dataset_->test_size() == 0) return;
  for (auto& [dataset, members] : tested)
    test_sources_.push_back({dataset->test(delivery_), std::move(members)});
}

}  // namespace convoy::app
