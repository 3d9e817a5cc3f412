// What the trainer does before the first step: ranks, data, the session, and the trainings with
// their folders.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/json_text.h"
#include "app/model/drop_path.h"
#include "app/model/zoo/zoo.h"
#include "app/timing/limited_steps.h"
#include "app/training/parameter_rates.h"
#include "app/training/rank_facts.h"
#include "app/training/rank_setup.h"
#include "app/training/run_network.h"
#include "app/training/trainer.h"
#include "kernels/device/device_memory.h"

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

// The run is valid, but its rate and its scaled learning rate are not those of the requested batch.
void warn_of_short_steps(std::int64_t global_batch, std::int64_t train_images) {
  if (global_batch > train_images)
    spdlog::warn("--global-batch: found {}, but there are {} training images; a step sees each of them once",
                 global_batch, train_images);
}

// The options that decide which samples a batch has and what augmentation does to them.
std::string data_key(const TrainOptions& options) {
  static constexpr std::string_view kKeys[] = {
      "seed",         "crop-padding", "cutout",         "flip",  "random-resized-crop",
      "color-jitter", "auto-augment", "random-erasing", "mixup", "cutmix"};
  const nlohmann::json values = to_json(options);
  std::string key;
  for (const std::string_view name : kKeys) key += values.at(std::string(name)).dump() + " ";
  return key;
}

std::int64_t available_memory(const StepOptions& options, int ranks_on_host) {
  if (options.memory_limit > 0) return options.memory_limit;
  // A captured graph and the libraries need some memory of the device, too.
  if (options.backend == kernels::Backend::cuda) return kernels::free_gpu_memory() / 100 * 97;
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / ranks_on_host;
}

}  // namespace

Trainer::Trainer(const TrainOptions& options, comm::MpiEnvironment& environment, const StopSignals& signals,
                 std::vector<TrainOptions> members)
    : options_(options),
      environment_(environment),
      signals_(signals),
      world_(environment.world()),
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
  threads_ = use_cores(environment_, options_.threads);
  obey_signals();
  if (members_) ranks_ = &solo_.emplace(world_.split(world_.rank(), 0, "members"));
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
          &std::cout,
          ProgressOptions{standard_output_terminal(), options_.log_every, total_steps_, steps_per_epoch_});
  }
  make_trainings();
  if (world_.rank() == 0) warn_of_short_steps(options_.global_batch, dataset_->train_size());
  if (!options_.trace.empty())
    trace_ = std::make_unique<Trace>(options_.trace, *session_, world_, step_, total_steps_);
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

// Synthetic images are drawn from the seed.
Dataset& Trainer::dataset_of(const TrainOptions& options) {
  if (options.data != "synthetic" || options.seed == options_.seed) return *dataset_;
  std::unique_ptr<Dataset>& own = synthetic_[options.seed];
  if (!own) own = std::make_unique<Dataset>(options, *ranks_, threads_);
  return *own;
}

// Makes the session and the trainings of this rank, with the state of the step to resume from.
void Trainer::make_trainings() {
  own_ = members_ ? members_->of_rank(world_.size(), world_.rank()) : std::vector{0};
  live_.assign(own_.size(), 1);
  better_.assign(own_.size(), 0);
  all_live_ = members_ ? std::ssize(members_->running()) : 1;
  make_session();
  run_on_all_ranks(world_, [&] {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      TrainOptions options = options_of(i);
      options.resume = options_.resume, options.overwrite = options_.overwrite;
      trainings_.push_back(std::make_unique<Training>(options, *ranks_, dataset_of(options_of(i)),
                                                      steps_per_epoch_, structure_sha256_));
      trainings_[i]->open_folder();
    }
  });
  for (std::size_t i = 0; i < own_.size(); ++i)
    trainings_[i]->bind(std::move(states_[i]), run_ranks_->replica() == 0);
  resume();
  obey_signals();
  start_reports();
  start_sources();
}

void Trainer::start_reports() {
  const std::vector<RankPlace> places = places_of(environment_, *ranks_);
  run_on_all_ranks(world_, [&] {
    RunPlan plan{places,
                 threads_,
                 steps_per_epoch_,
                 total_steps_,
                 resumed_ > 0 ? std::optional(step_) : std::nullopt,
                 plan_,
                 frozen_parameters_,
                 initial_weights_,
                 {}};
    if (members_)
      plan.members = fmt::format("{} over {} rank{}, at most {} each; they differ in {}. Below is the first",
                                 all_live_, world_.size(), world_.size() == 1 ? "" : "s",
                                 (all_live_ + world_.size() - 1) / world_.size(),
                                 fmt::join(members_->differing(), ", "));
    using Output = RunReport::Output;
    const Output alone = world_.rank() == 0 ? Output::all : Output::none;
    for (const auto& training : trainings_)
      training->start_report(plan, *session_, members_ ? Output::files : alone);
    if (members_ && world_.rank() == 0) {
      if (session_ && !halved_) trainings_[0]->report().print_configuration(*dataset_, *session_);
      members_->write();
    }
  });
}

const TrainOptions& Trainer::options_of(std::size_t own) const {
  return members_ ? members_->options(own_.at(own)) : options_;
}

// Ends the process on a signal: before the first step there is nothing to keep in a checkpoint.
// Collective, as signals reach ranks at different times.
void Trainer::obey_signals() const {
  const std::int32_t received = signals_.received() != 0 ? 1 : 0;
  if (world_.all_reduce(received, comm::ReduceOp::max, "signals during the start-up") == 0) return;
  if (world_.rank() == 0) fmt::print(stderr, "convoy: {}\n", kStoppedEarly);
  throw ExitStatus{kRequeueStatus};
}

// Refuses early, before anything takes time. If the earlier run is still active, its lock gives the
// error.
void Trainer::refuse_second_run() const {
  if (world_.rank() != 0 || options_.resume || options_.overwrite || !holds_a_run(options_.out)) return;
  const RunLock lock(options_.out);
  throw UsageError(
      fmt::format("--out {}: found an earlier run's results there, expected --resume to go on, --overwrite "
                  "to replace them or "
                  "another folder",
                  options_.out));
}

Network Trainer::make_replica_network() const {
  const data::ImageShape image = dataset_->input_shape();
  Network network = make_network(
      options_.model, {replica_capacity(), image.channels, image.height, image.width}, dataset_->classes());
  if (options_.reinitialise) network.reinitialise();
  return network;
}

Network Trainer::trained(Network network) const {
  network = with_outputs(std::move(network), options_.loss_weights.size());
  if (options_.drop_path >= 0) network = with_drop_path(network, static_cast<float>(options_.drop_path));
  return network;
}

// Decides which parameters are trained and what they start from.
void Trainer::prepare(Network& network) {
  const int overridden = set_rates(network, options_);
  if (overridden > 0 && world_.rank() == 0)
    spdlog::warn("--rate trains {} parameters that --freeze names, too", overridden);
  frozen_parameters_ = 0;
  for (const ParameterSpec& spec : network.parameters())
    if (spec.frozen()) frozen_parameters_ += spec.shape.elements();
  if (!options_.init.empty())
    initial_weights_ = set_initial_weights(network, options_.init, dataset_->info().classes);
}

std::int64_t Trainer::replica_capacity() const {
  const std::int64_t replicas = run_ranks_->replicas().size();
  return (options_.global_batch / options_.accumulate + replicas - 1) / replicas;
}

StepOptions Trainer::session_options() const {
  StepOptions session;
  session.backend = options_.backend;
  session.precision = options_.precision;
  session.input = input_of(options_.backend, *dataset_, replica_capacity(), options_.data_on_device);
  session.input.batches = std::max(static_cast<int>(data_groups().size()), 1);
  session.synchronised_batch_norm = options_.sync_batch_norm;
  session.mixing = options_.mixup > 0 || options_.cutmix > 0;
  session.loss_weights.assign(options_.loss_weights.begin(), options_.loss_weights.end());
  session.optimizer = optimizer_of(options_);
  session.accumulate = options_.accumulate > 1;
  session.clip = options_.clip_gradient_norm > 0;
  session.members.clear();
  for (std::size_t i = 0; i < own_.size(); ++i) {
    session.members.push_back(member_of(options_of(i)));
    session.input.most_image_ops =
        std::max(session.input.most_image_ops, Dataset::most_image_ops(options_of(i)));
  }
  session.tuning_file = options_.tuning_file;
  session.lanes = static_cast<int>(options_.lanes);
  session.memory_limit = static_cast<std::int64_t>(options_.memory_limit);
  session.host_memory = options_.host_memory;
  return session;
}

void Trainer::make_session() {
  std::optional<Network> network;
  Facts facts;
  StepOptions options;
  run_on_all_ranks(world_, [&] {
    network.emplace(make_replica_network());
    structure_sha256_ = structure_sha256(*network);
    facts = facts_of(*network);
    if (world_.rank() == 0)
      for (const std::string& note : network->notes()) spdlog::info("{}: {}", network->name(), note);
    network = trained(std::move(*network));
    prepare(*network);
    options = session_options();
  });
  require_same_data(world_, options_.model, facts);
  if (!options_.init.empty())
    require_same_data(world_, options_.init, {{"SHA-256 of the weights", initial_weights_sha256(*network)}});
  if (!members_) return bind_session(*network, options);
  run_on_all_ranks(world_, [&] {
    if (!own_.empty()) bind_session(*network, options);
  });
}

// Collective over the ranks that run a training together.
void Trainer::bind_session(const Network& network, const StepOptions& options) {
  const RankGroups& groups = run_ranks_->groups();
  std::optional<PlannedStep> planned;
  if (run_ranks_->partitioned()) planned = plan_partition(network, options, *ranks_, groups, threads_);
  if (planned) plan_ = planned->plan;
  if (!members_) obey_signals();
  std::optional<CompiledSteps> steps;
  if (planned)
    run_on_all_ranks(*ranks_, [&] {
      steps = stage_of_steps(planned->whole, plan_->placement, groups.stages->rank(), options);
    });
  else
    steps = compile_within_limit(network, options, *ranks_, groups);
  if (members_) check_members_fit(*steps, options);
  run_on_all_ranks(*ranks_, [&] {
    session_ = std::make_unique<Session>(std::move(*steps), options, groups);
    if (options.input.kind == InputOptions::Kind::resident && session_->memory().has_images())
      dataset_->visit_images([&](std::int64_t first, const std::uint8_t* pixels, std::int64_t count) {
        if (signals_.received() != 0) throw ExitStatus{kRequeueStatus};
        session_->put_image(first, pixels, count);
      });
  });
  delivery_ = delivery_for(options.input, session_->memory());
  if (plan_) session_->connect();
  draw_other_weights();
  states_.clear();
  if (plan_)
    states_.push_back(std::make_unique<SessionState>(*session_, planned->whole.train->graph,
                                                     options.optimizer, run_ranks_->replica_stages()));
  else
    for (int member = 0; member < session_->members(); ++member)
      states_.push_back(std::make_unique<SessionState>(*session_, member));
}

void Trainer::check_members_fit(const CompiledSteps& steps, const StepOptions& options) const {
  const MemoryPlan plan(steps, options, {});
  const std::int64_t available = available_memory(options, world_.local_size());
  if (plan.total() <= available) return;
  const std::int64_t common = plan.total() - plan.members() * plan.stride();
  const std::int64_t fit = std::max<std::int64_t>((available - common) / plan.stride(), 0);
  throw std::runtime_error(fmt::format(
      "--members: found {} members for each of {} ranks, which need {} MiB, but {} has {} MiB: {} members a "
      "rank "
      "fit",
      plan.members(), world_.size(), plan.total() >> 20,
      options.memory_limit > 0 ? std::string("--memory-limit") : environment_.device().to_string(),
      available >> 20, fit));
}

// The network has the first values of the first member's --init.
void Trainer::draw_other_weights() {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    if (options_of(i).init == options_.init) continue;
    Network network = trained(make_replica_network());
    set_rates(network, options_);
    if (!options_of(i).init.empty())
      set_initial_weights(network, options_of(i).init, dataset_->info().classes);
    session_->initialise(network, static_cast<int>(i));
  }
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
  const data::Position start{step_ / steps_per_epoch_, step_ % steps_per_epoch_ * options_.accumulate};
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
