// Makes the network, the compiled steps and the session of a trainer.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
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

std::int64_t available_memory(const StepOptions& options, int ranks_on_host) {
  if (options.memory_limit > 0) return options.memory_limit;
  // Leave 3 % of the device's free memory for captured graphs and libraries.
  if (options.backend == kernels::Backend::cuda) return kernels::free_gpu_memory() / 100 * 97;
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / ranks_on_host;
}

}  // namespace

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
  if (options_.parametrisation == Parametrisation::mup)
    parametrise_by_width(network, options_.base_width, options_.optimizer);
  return network;
}

// Sets which parameters are trained, how fast, and the initial values that --init gives.
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
  session.read_tuning_only = world_.size() > 1;
  session.lanes = options_.backend == kernels::Backend::cuda ? options_.lanes.count : kDefaultLanes;
  session.memory_limit = static_cast<std::int64_t>(options_.memory_limit);
  session.host_memory = options_.host_memory;
  session.gate = host_.gate;
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

// Compiles the steps and makes the session. Collective over the ranks that run a training together.
void Trainer::bind_session(const Network& network, const StepOptions& options) {
  const RankGroups& groups = run_ranks_->groups();
  std::optional<PlannedStep> planned;
  if (run_ranks_->partitioned()) planned = plan_partition(network, options, *ranks_, groups, threads_);
  if (planned) plan_ = planned->plan;
  if (!members_) obey_signals();
  std::optional<CompiledSteps> steps;
  if (planned) {
    run_on_all_ranks(*ranks_, [&] {
      steps = stage_of_steps(planned->whole, plan_->placement, groups.stages->rank(), options);
    });
  } else {
    const Admission admitted(host_.gate, DeviceGate::Use::alone);
    steps = compile_within_limit(network, options, *ranks_, groups);
  }
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
  {
    const Admission admitted(host_.gate, DeviceGate::Use::alone);
    lane_choice_ = choose_lanes(*session_, options, *ranks_);
  }
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

// Initialises the members whose --init differs from the first member's. The session already has the
// initial values of the first member.
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

}  // namespace convoy::app
