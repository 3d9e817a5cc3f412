#include "app/execute/session.h"

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/execute/executor.h"
#include "app/execute/program_builder.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

// Reserves memory in a collective call, which all ranks must make. If this rank fails before its
// call, the destructor makes it with 0 bytes, so that the other ranks do not wait forever.
class CollectiveMemory {
 public:
  using Ask = std::shared_ptr<std::byte> (comm::Collectives::*)(std::size_t bytes);
  CollectiveMemory(comm::Collectives* ranks, Ask ask, bool needed)
      : ranks_(ranks), ask_(ask), owed_(needed) {}
  ~CollectiveMemory() {
    if (!owed_) return;
    try {
      reserve(0);
      // Ignore this error: the first failure, which led to the destructor, is reported.
    } catch (const std::exception&) {
    }
  }
  CollectiveMemory(const CollectiveMemory&) = delete;
  CollectiveMemory& operator=(const CollectiveMemory&) = delete;
  std::shared_ptr<std::byte> reserve(std::size_t bytes) {
    owed_ = false;
    return (ranks_->*ask_)(bytes);
  }

 private:
  comm::Collectives* ranks_;
  Ask ask_;
  bool owed_;
};

// Returns the number of lanes (lane_plan.h) of a session with several members. If some kernels
// compute only one member per launch, such a launch leaves multiprocessors free. So several members
// then run in parallel lanes.
int lanes_of_members(const CompiledSteps& steps, int lanes, int members) {
  constexpr int kMostOfMembers = 16;
  const auto alone = [](const CompiledGraph& compiled) {
    return std::ranges::any_of(compiled.kernels, [](const kernels::Kernel& kernel) {
      return kernel.bind != nullptr && !kernel.takes_members;
    });
  };
  if (!alone(steps.main()) && !alone(steps.evaluate)) return lanes;
  return std::max(lanes, std::min(lanes * members, kMostOfMembers));
}

// Reserves all memory: first the gradients and then the arena, both in collective calls. If this
// rank fails, the destructors of `gradients` and `arena` make the same calls in the same order.
std::unique_ptr<ModelMemory> reserve_memory(const CompiledSteps& steps, const StepOptions& options,
                                            const RankGroups& groups) {
  CollectiveMemory arena(groups.stages, &comm::Collectives::transfer_memory, groups.stages != nullptr);
  CollectiveMemory gradients(groups.replicas, &comm::Collectives::shared_memory, steps.train.has_value());
  SharedMemory shared;
  shared.gradients = [&](std::size_t bytes) { return gradients.reserve(bytes); };
  shared.scratch = [&](std::size_t bytes) { return groups.replicas->scratch_bytes(bytes); };
  if (groups.stages != nullptr) shared.arena = [&](std::size_t bytes) { return arena.reserve(bytes); };
  if (options.gate != nullptr)
    shared.parts = [&](const MemoryNeed& need) { return options.gate->reserve(need); };
  return std::make_unique<ModelMemory>(steps, options, shared);
}

// Returns the largest number of instructions in a program that wait for other ranks: all-reduces of
// statistics, ends of transfers, and three more for the buckets, the metrics and the gradient norm.
int most_waits(const CompiledSteps& steps, const StepOptions& options, const RankGroups& groups) {
  if (groups.world->size() == 1 || !options.time_waits) return 0;
  const auto in = [](const CompiledGraph& compiled) {
    return std::ranges::count_if(compiled.graph.nodes, [](const Node& node) {
      return node.is<AllReduce>() || (node.is<Transfer>() && !std::get<Transfer>(node.op).begins());
    });
  };
  return static_cast<int>(std::max(steps.train ? in(*steps.train) : 0, in(steps.evaluate))) + 3;
}

// Returns where an evaluation step writes its probabilities; empty if it does not keep them.
std::span<const float> probabilities_of(const CompiledGraph& evaluate, const ModelMemory& memory) {
  const TensorId id = evaluate.graph.probabilities;
  if (id < 0) return {};
  const std::int64_t elements = evaluate.graph.tensors[static_cast<std::size_t>(id)].shape.elements();
  return {static_cast<const float*>(memory.address(evaluate, id)), static_cast<std::size_t>(elements)};
}

std::unique_ptr<Executor> make_executor(const CompiledSteps& steps, const StepOptions& options,
                                        const RankGroups& groups, const ModelMemory& memory,
                                        StepCommunication& communication, int lanes) {
  const std::span<const float> probabilities = probabilities_of(steps.evaluate, memory);
  if (options.backend == kernels::Backend::cuda) {
    const bool streamed = options.input.kind == InputOptions::Kind::streamed;
    const int fixed =
        options.lanes == kAutoLanes ? lanes_of_members(steps, kDefaultLanes, memory.members()) : lanes;
    return make_cuda_executor(memory, {probabilities, streamed, options.input.batches, lanes, fixed,
                                       most_waits(steps, options, groups), options.gate, options.precision});
  }
  // A rank may have only this thread, and then communication proceeds only when the thread drives
  // it. So `progress` is called between kernels.
  const auto progress = [&communication] {
    if (communication.buckets != nullptr) communication.buckets->progress();
    if (communication.transfers != nullptr) communication.transfers->progress();
  };
  return make_host_executor(memory, {probabilities, progress, &communication.exposed_ms, options.gate});
}

std::unique_ptr<comm::GradientBuckets> make_buckets(comm::Collectives& replicas, const ModelMemory& memory) {
  if (replicas.size() == 1) return nullptr;
  std::vector<comm::BucketSegment> segments;
  for (const kernels::ParameterSegment& segment : memory.segments())
    segments.push_back({segment.offset, segment.count});
  return std::make_unique<comm::GradientBuckets>(replicas, memory.flat_gradients(), segments);
}

}  // namespace

Session::Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups)
    : options_(options), groups_(groups), steps_(std::move(steps)) {
  const bool partitioned = groups.stages != nullptr;
  if (options.keep_probabilities && (options.training || partitioned))
    throw std::invalid_argument("only a whole step that does not train keeps its probabilities");
  if (options.accumulate && partitioned)
    throw std::invalid_argument("a partitioned step cannot take its batch in parts");
  if (options.members.size() > 1 && groups.world->size() > 1)
    throw std::invalid_argument("a rank that trains members sums nothing with other ranks");
  memory_ = reserve_memory(steps_, options_, groups_);
  communication_ = std::make_unique<StepCommunication>();
  if (partitioned) communication_->transfers = std::make_unique<Transfers>(*groups.stages);
  programs_ = std::make_unique<StepPrograms>();
  programs_->lanes = lanes_of_members(steps_, options_.lanes == kAutoLanes ? kMostLanes : options_.lanes,
                                      memory_->members());
  tensors_ = std::make_unique<SessionTensors>(steps_.main().graph, options_, groups_, *memory_);
  const Admission admitted = tensors_->use_memory();
  executor_ = make_executor(steps_, options_, groups_, *memory_, *communication_, programs_->lanes);
  input_ = std::make_unique<StepInput>(*executor_, *memory_, options_);
  tensors_->initialise();
  if (steps_.train) communication_->buckets = make_buckets(*groups_.replicas, *memory_);
  ProgramBuilder builder(steps_, options_, groups_, *memory_, *communication_);
  builder.build(*programs_);
  tensors_->set_copying(builder.copy_parameters());
}

Session::~Session() = default;

void Session::connect_stages() {
  if (communication_->transfers != nullptr) communication_->transfers->connect(options_.backend);
}

void Session::start(StepKind kind, bool stop_requested) {
  if (kind != StepKind::evaluate && !steps_.train)
    throw std::logic_error("a session that only evaluates cannot train");
  if (kind == StepKind::train_part && !options_.accumulate)
    throw std::logic_error("a session takes parts of a batch only with StepOptions::accumulate");
  switch (kind) {
    case StepKind::train:
      return start_program(programs_->train, stop_requested);
    case StepKind::train_part:
      return start_program(programs_->train_part, stop_requested);
    case StepKind::evaluate:
      return start_program(programs_->evaluate, stop_requested);
  }
}

void Session::start_program(const Program& program, bool stop_requested) {
  tensors_->copy_written();
  executor_->start(program, stop_requested);
  in_flight_trains_.push_back(program.trains());
}

StepResult Session::finish_step() {
  const StepResult result = executor_->finish();
  if (options_.gate != nullptr) options_.gate->finished(in_flight_trains_.front());
  in_flight_trains_.pop_front();
  return result;
}

int Session::steps_in_flight() const { return executor_->in_flight(); }
int Session::steps_ahead() const { return executor_->steps_ahead(); }
void Session::retire(int member) {
  if (member < 0 || member >= memory_->members()) throw std::out_of_range("a session has no such member");
  executor_->retire(member);
}

}  // namespace convoy::app
