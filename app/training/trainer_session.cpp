// Makes the compiled steps and the sessions of a trainer, one of each for every shape. A shape is a
// group of members (trainings that run together) that share a compiled step.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/timing/limited_steps.h"
#include "app/training/parameter_rates.h"
#include "app/training/rank_setup.h"
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

std::int64_t available_memory(const TrainOptions& options, int ranks_on_host) {
  if (options.memory_limit > 0) return static_cast<std::int64_t>(options.memory_limit);
  // Leave 3 % of the device's free memory for captured graphs and libraries.
  if (options.backend == kernels::Backend::cuda) return kernels::free_gpu_memory() / 100 * 97;
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / ranks_on_host;
}

}  // namespace

StepOptions Trainer::session_options(std::size_t number) const {
  const Shape& shape = shapes_[number];
  const TrainOptions& options = shape.options;
  const auto after = static_cast<int>(shape.first + shape.members.size());
  const auto has_members = [&](const std::vector<int>& group) {
    return std::ranges::any_of(group, [&](int i) { return i >= static_cast<int>(shape.first) && i < after; });
  };
  StepOptions session;
  session.backend = options.backend;
  session.precision = options.precision;
  session.input = input_of(options.backend, *dataset_, replica_capacity(), options.data_on_device);
  // The session of the first shape stores the images on the device. The other sessions read them
  // there.
  if (number > 0 && session.input.kind == InputOptions::Kind::resident) session.input.resident_images = 0;
  session.input.batches = static_cast<int>(std::ranges::count_if(data_groups(), has_members));
  session.synchronised_batch_norm = options.sync_batch_norm;
  session.mixing = options.mixes();
  session.loss_weights.assign(options.loss_weights.begin(), options.loss_weights.end());
  session.optimizer = optimizer_of(options);
  session.accumulate = options.accumulate > 1;
  session.clip = options.clip_gradient_norm > 0;
  session.members.clear();
  for (std::size_t i = shape.first; i < shape.first + shape.members.size(); ++i) {
    session.members.push_back(member_of(options_of(i)));
    session.input.most_image_ops =
        std::max(session.input.most_image_ops, Dataset::most_image_ops(options_of(i)));
  }
  session.tuning_file = options.tuning_file;
  session.read_tuning_only = world_.size() > 1;
  session.lanes = options.backend == kernels::Backend::cuda ? options.lanes.count : kDefaultLanes;
  session.memory_limit = static_cast<std::int64_t>(options_.memory_limit);
  session.host_memory = options.host_memory;
  session.gate = host_.gate;
  return session;
}

// Makes the sessions. With members, each rank makes its own sessions without the other ranks. If
// that fails on one rank, run_on_all_ranks() lets all ranks fail together.
void Trainer::make_sessions() {
  const auto make = [&] {
    if (shapes_.empty()) return;
    for (std::size_t i = 0; i < shapes_.size(); ++i) shapes_[i].step = session_options(i);
    compile_shapes();
    states_.clear();
    std::vector<Session*> sessions;
    for (Shape& shape : shapes_) {
      bind_session(shape);
      sessions.push_back(shape.session.get());
    }
    sessions_ = std::make_unique<JoinedSessions>(std::move(sessions));
  };
  members_ ? run_on_all_ranks(world_, make) : make();
}

// Compiles the steps of all shapes (groups of members that share a compiled step). If the memory
// limit is too low for all shapes together, it is divided among them. Only the memory of
// activations can shrink, so every shape gets all memory that it needs for other purposes. The rest
// of the limit is divided in proportion to the activations of the shapes. Collective over the ranks
// that run a training together.
void Trainer::compile_shapes() {
  const RankGroups& groups = run_ranks_->groups();
  if (run_ranks_->partitioned()) return;
  if (!members_) obey_signals();
  const auto compile = [&](Shape& shape) {
    const Admission admitted(host_.gate, DeviceGate::Use::alone);
    shape.steps = compile_within_limit(*shape.network, shape.step, *ranks_, groups);
    const MemoryPlan plan(*shape.steps, shape.step, {});
    const double activations = static_cast<double>(plan.bytes(Region::activations)) * plan.members();
    return std::pair(static_cast<double>(plan.total()) - activations, activations);
  };
  const auto limit = static_cast<double>(options_.memory_limit);
  // For each shape: the bytes that cannot shrink, and those of its activations.
  std::vector<std::pair<double, double>> bytes;
  for (Shape& shape : shapes_) {
    if (shapes_.size() > 1) shape.step.memory_limit = 0;
    bytes.push_back(compile(shape));
  }
  double fixed = 0, shrinks = 0;
  for (const auto& [own_fixed, own_activations] : bytes) fixed += own_fixed, shrinks += own_activations;
  const bool divides = shapes_.size() > 1 && limit > 0 && fixed + shrinks > limit;
  for (std::size_t i = 0; divides && i < shapes_.size(); ++i) {
    const double share = std::max(0.0, limit - fixed) * bytes[i].second / std::max(shrinks, 1.0);
    shapes_[i].step.memory_limit = static_cast<std::int64_t>(bytes[i].first + share);
    compile(shapes_[i]);
  }
  if (!members_) return;
  check_members_fit();
  // All shapes together fit into the limit now, so the limits of the single shapes are no longer
  // needed.
  if (shapes_.size() > 1)
    for (Shape& shape : shapes_) shape.step.memory_limit = 0;
}

// Makes the session of a shape from its compiled steps or, with --partition, the session of this
// rank's stage. Collective over the ranks that run a training together.
void Trainer::bind_session(Shape& shape) {
  const RankGroups& groups = run_ranks_->groups();
  std::optional<PlannedStep> planned;
  if (run_ranks_->partitioned()) {
    planned = plan_partition(*shape.network, shape.step, *ranks_, groups, threads_);
    plan_ = planned->plan;
    obey_signals();
    run_on_all_ranks(*ranks_, [&] {
      shape.steps = stage_of_steps(planned->whole, plan_->placement, groups.stages->rank(), shape.step);
    });
  }
  std::unique_ptr<Session>& session = shape.session;
  run_on_all_ranks(*ranks_, [&] {
    const bool resident = shape.step.input.kind == InputOptions::Kind::resident;
    session = std::make_unique<Session>(std::move(*shape.steps), shape.step, groups);
    if (!resident || !session->memory().has_images()) return;
    if (&shape != &shapes_[0]) return session->input().read_images_of(shapes_[0].session->input());
    dataset_->visit_images([&](std::int64_t first, const std::uint8_t* pixels, std::int64_t count) {
      if (signals_.received() != 0) throw ExitStatus{kRequeueStatus};
      session->tensors().put_image(first, pixels, count);
    });
  });
  shape.steps.reset();
  delivery_ = delivery_for(shape.step.input, session->memory());
  session->connect_stages();
  {
    const Admission admitted(host_.gate, DeviceGate::Use::alone);
    shape.lanes = choose_lanes(*session, shape.step, *ranks_);
  }
  draw_other_weights(shape);
  shape.network.reset();
  if (plan_)
    states_.push_back(std::make_unique<SessionState>(*session, planned->whole.train->graph,
                                                     shape.step.optimizer, run_ranks_->replica_stages()));
  else
    for (int member = 0; member < session->memory().members(); ++member)
      states_.push_back(std::make_unique<SessionState>(*session, member));
}

// Throws std::runtime_error if there is not enough memory for all members of this rank. The message
// says how many members fit if those that need the least memory are taken first.
void Trainer::check_members_fit() const {
  std::vector<MemoryPlan> plans;
  for (const Shape& shape : shapes_) plans.push_back(MemoryPlan(*shape.steps, shape.step, {}));
  std::int64_t needed = 0;
  for (const MemoryPlan& plan : plans) needed += plan.total();
  const std::int64_t available = available_memory(options_, world_.local_size());
  if (needed <= available) return;
  std::ranges::sort(plans, {}, &MemoryPlan::stride);
  std::int64_t fit = 0, left = available;
  for (const MemoryPlan& plan : plans) {
    const std::int64_t common = plan.total() - plan.members() * plan.stride();
    const std::int64_t more = std::clamp<std::int64_t>((left - common) / plan.stride(), 0, plan.members());
    fit += more;
    left -= more > 0 ? common + more * plan.stride() : 0;
  }
  const std::string where = options_.memory_limit > 0 ? "--memory-limit" : environment_.device().to_string();
  throw std::runtime_error(fmt::format(
      "--members: found {} members for {}, which need {} MiB, but {} has {} MiB: {} members a rank fit",
      own_.size(), world_.size() > 1 ? fmt::format("each of {} ranks", world_.size()) : "this rank",
      needed >> 20, where, available >> 20, fit));
}

// Initialises the members whose --init differs from that of the shape's first member, with which
// the session was initialised.
void Trainer::draw_other_weights(const Shape& shape) {
  for (std::size_t i = shape.first; i < shape.first + shape.members.size(); ++i) {
    const TrainOptions& own = options_of(i);
    if (own.init == shape.options.init) continue;
    Network network = trained(make_replica_network(own), own);
    set_rates(network, own);
    set_values(network, own);
    shape.session->tensors().initialise(network, static_cast<int>(i - shape.first));
  }
}

}  // namespace convoy::app
