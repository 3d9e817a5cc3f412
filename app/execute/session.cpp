#include "app/execute/session.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "app/compile/fit_memory.h"
#include "app/execute/fill_with_numbers.h"
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

}  // namespace

namespace {

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

CompiledSteps steps_within_limit(const Network& network, const StepOptions& options,
                                 comm::Collectives& ranks) {
  CompiledSteps steps = compile_steps(network, options, {&ranks, &ranks, nullptr});
  if (exceeds_limit(steps, options, ranks))
    fit_into_limit(steps, options, ranks, estimated_node_ms(*steps.train, options), estimated_link(options));
  return steps;
}

}  // namespace

Session::Session(const Network& network, const StepOptions& options, comm::Collectives& ranks)
    : Session(steps_within_limit(network, options, ranks), options, {&ranks, &ranks, nullptr}) {}

Session::Session(CompiledSteps steps, const StepOptions& options, const RankGroups& groups)
    : options_(options), groups_(groups), steps_(std::move(steps)) {
  const bool partitioned = groups.stages != nullptr;
  if (options.keep_probabilities && (options.training || partitioned))
    throw std::invalid_argument("only a whole step that does not train keeps its probabilities");
  if (options.accumulate && partitioned)
    throw std::invalid_argument("a partitioned step cannot take its batch in parts");
  if (options.members.size() > 1 && groups.world->size() > 1)
    throw std::invalid_argument("a rank that trains members sums nothing with other ranks");
  reserve_memory();
  for (int member = 0; member < members(); ++member) all_members_.push_back(member);
  if (partitioned) communication_.transfers = std::make_unique<Transfers>(*groups.stages);
  const Admission admitted = use_memory();
  make_executor();
  for (const int member : all_members_) initialise(steps_.main().graph, member);
  if (steps_.train) make_buckets();
  ProgramBuilder builder(steps_, options_, groups_, *memory_, communication_);
  programs_ = builder.build();
  copy_parameters_ = builder.copy_parameters();
}

// Reserves all memory: first the gradients and then the arena, both in collective calls. If this
// rank fails, the destructors of `gradients` and `arena` make the same calls in the same order.
void Session::reserve_memory() {
  CollectiveMemory arena(groups_.stages, &comm::Collectives::transfer_memory, groups_.stages != nullptr);
  CollectiveMemory gradients(groups_.replicas, &comm::Collectives::shared_memory, steps_.train.has_value());
  SharedMemory shared;
  shared.gradients = [&](std::size_t bytes) { return gradients.reserve(bytes); };
  shared.scratch = [&](std::size_t bytes) { return groups_.replicas->scratch_bytes(bytes); };
  if (groups_.stages != nullptr) shared.arena = [&](std::size_t bytes) { return arena.reserve(bytes); };
  if (options_.gate != nullptr)
    shared.parts = [&](const MemoryNeed& need) { return options_.gate->reserve(need); };
  memory_ = std::make_unique<ModelMemory>(steps_, options_, shared);
}

void Session::connect() {
  if (communication_.transfers == nullptr || options_.backend != kernels::Backend::cuda) return;
  communication_.transfers->run_all();
  kernels::synchronize(options_.backend);
}

// Returns the largest number of instructions in a program that wait for other ranks: all-reduces of
// statistics, ends of transfers, and three more for the buckets, the metrics and the gradient norm.
int Session::most_waits() const {
  if (groups_.world->size() == 1 || !options_.time_waits) return 0;
  const auto in = [](const CompiledGraph& compiled) {
    return std::ranges::count_if(compiled.graph.nodes, [](const Node& node) {
      return node.is_all_reduce() || (node.transfer() != nullptr && !node.transfer()->begins());
    });
  };
  return static_cast<int>(std::max(steps_.train ? in(*steps_.train) : 0, in(steps_.evaluate))) + 3;
}

std::span<const float> Session::probabilities_of_step() const {
  const CompiledGraph& compiled = steps_.evaluate;
  const TensorId id = compiled.graph.probabilities;
  if (id < 0) return {};
  const std::int64_t elements = compiled.graph.tensors[static_cast<std::size_t>(id)].shape.elements();
  return {static_cast<const float*>(memory_->address(compiled, id)), static_cast<std::size_t>(elements)};
}

void Session::make_executor() {
  const std::span<const float> probabilities = probabilities_of_step();
  if (options_.backend == kernels::Backend::cuda) {
    const bool streamed = options_.input.kind == InputOptions::Kind::streamed;
    const int fixed =
        options_.lanes == kAutoLanes ? lanes_of_members(steps_, kDefaultLanes, members()) : lanes();
    executor_ = make_cuda_executor(*memory_, {probabilities, streamed, options_.input.batches, lanes(), fixed,
                                              most_waits(), options_.gate, options_.precision});
  } else {
    // A rank may have only this thread, and then communication proceeds only when the thread drives
    // it. So `progress` is called between kernels.
    const auto progress = [this] {
      if (communication_.buckets != nullptr) communication_.buckets->progress();
      if (communication_.transfers != nullptr) communication_.transfers->progress();
    };
    executor_ =
        make_host_executor(*memory_, {probabilities, progress, &communication_.exposed_ms, options_.gate});
  }
  for (const int member : all_members_) {
    const Member& own = options_.members[static_cast<std::size_t>(member)];
    kernels::StepControl& control = executor_->control(member) = {};
    control.seed = own.seed;
    control.hyperparameters = own.hyperparameters;
  }
}

void Session::prepare_timing() {
  const Admission admitted = use_memory();
  if (copy_parameters_) copy_parameters_({});
  const auto fill = [&](void* data, std::int64_t bytes) {
    fill_with_numbers(options_.backend, static_cast<std::byte*>(data), bytes);
  };
  for (int member = 0; member < members(); ++member) {
    fill(memory_->of_member(memory_->update_workspace(), member), memory_->plan().bytes(Region::activations));
    if (memory_->has_images() && options_.input.kind == InputOptions::Kind::filled)
      fill(memory_->of_member(memory_->images(), member), static_cast<std::int64_t>(images().desc.bytes()));
    kernels::StepControl control = executor_->control(member);
    control.valid = static_cast<std::int32_t>(memory_->capacity());
    control.global_valid = control.valid * groups_.replicas->size();
    control.learning_rate = 0;
    kernels::copy_in(options_.backend, memory_->of_member(memory_->control(), member), &control,
                     sizeof control);
    const kernels::MixParameters mix;
    if (memory_->has_mix())
      kernels::copy_in(options_.backend, memory_->of_member(memory_->mix(), member), &mix, sizeof mix);
  }
}

void Session::reset() {
  const Admission admitted = use_memory();
  memory_->clear(options_.backend);
  for (const int member : all_members_) initialise(steps_.main().graph, member);
}

int Session::lanes() const {
  return lanes_of_members(steps_, options_.lanes == kAutoLanes ? kMostLanes : options_.lanes, members());
}

double Session::evaluated_batch_steps() const {
  const auto ms_of = [&](const CompiledGraph& step) {
    const std::vector<double> ms = estimated_node_ms(step, options_);
    return std::accumulate(ms.begin(), ms.end(), 0.0);
  };
  return ms_of(steps_.evaluate) / ms_of(*steps_.train);
}

std::int64_t Session::checkpoint_bytes() const {
  std::int64_t elements = 0;
  for (const auto* tensors :
       {&memory_->parameters(), &memory_->states(), &memory_->optimizer_states(), &memory_->averages()})
    for (const PersistentTensor& tensor : *tensors) elements += tensor.desc.shape.elements();
  return elements * members() * std::int64_t{sizeof(float)};
}

void Session::initialise(const StepGraph& graph, int member) {
  const std::uint64_t seed = options_.members[static_cast<std::size_t>(member)].seed;
  const auto fill = [&](const PersistentTensor& tensor, const ParameterSpec& spec) {
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    app::initialize(spec, seed, values.data());
    write(tensor, values, member);
  };
  for (std::size_t i = 0; i < graph.parameters.size(); ++i)
    fill(memory_->parameters()[i], graph.parameters[i].spec);
  for (std::size_t i = 0; i < graph.states.size(); ++i) fill(memory_->states()[i], graph.states[i].second);
}

void Session::initialise(const Network& network, int member) {
  const Admission admitted = use_memory();
  const std::uint64_t seed = options_.members[static_cast<std::size_t>(member)].seed;
  std::map<std::string, const ParameterSpec*> specs;
  for (const Layer& layer : network.layers())
    for (const auto* list : {&layer.parameters, &layer.states})
      for (const ParameterSpec& spec : *list) specs[spec.name] = &spec;
  for (const auto* list : {&memory_->parameters(), &memory_->states()})
    for (const PersistentTensor& tensor : *list) {
      std::vector<float> values(static_cast<std::size_t>(tensor.desc.shape.elements()));
      app::initialize(*specs.at(tensor.name), seed, values.data());
      write(tensor, values, member);
    }
}

void Session::make_buckets() {
  if (groups_.replicas->size() == 1) return;
  std::vector<comm::BucketSegment> segments;
  for (const kernels::ParameterSegment& segment : memory_->segments())
    segments.push_back({segment.offset, segment.count});
  communication_.buckets =
      std::make_unique<comm::GradientBuckets>(*groups_.replicas, memory_->flat_gradients(), segments);
}

void Session::start(const Program& program, bool stop_requested) {
  if (copies_are_stale_ && copy_parameters_) {
    const Admission admitted = use_memory();
    copy_parameters_({});
    kernels::synchronize(options_.backend);
  }
  copies_are_stale_ = false;
  const bool trains = &program != &programs_.evaluate;
  // An evaluation reports the plain cross-entropy, without the label smoothing of the training.
  for (const int member : all_members_)
    control(member).hyperparameters.label_smoothing =
        trains ? options_.members[static_cast<std::size_t>(member)].hyperparameters.label_smoothing : 0;
  executor_->start(program, stop_requested);
  in_flight_trains_.push_back(trains);
}

StepMetrics Session::evaluate(data::BatchSource& source, std::int64_t first_resident,
                              const VisitBatch& visit) {
  StepMetrics sum;
  // Samples and labels of the batches in flight, for `visit`. Without `visit` the queue stays
  // empty.
  std::deque<EvaluatedBatch> started;
  const auto finish = [&] {
    sum += finish_step();
    if (!visit) return;
    started.front().probabilities = executor_->probabilities();
    visit(started.front());
    started.pop_front();
  };
  for (std::int64_t step = 0; step < source.steps_per_epoch(); ++step) {
    data::BatchLease batch = source.next();
    if (visit)
      started.push_back({{batch->samples, batch->samples + batch->capacity},
                         {batch->labels, batch->labels + batch->capacity},
                         {}});
    load(std::move(batch), first_resident);
    start_evaluate_step();
    if (steps_in_flight() > steps_ahead()) finish();
  }
  while (steps_in_flight() > 0) finish();
  return sum;
}

void Session::read_images_of(const Session& owner) {
  images_at_ = static_cast<const std::byte*>(owner.memory_->images()) -
               static_cast<const std::byte*>(memory_->images());
}

void Session::put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count) {
  const std::int64_t bytes = options_.input.stored.bytes();
  kernels::copy_in(options_.backend, static_cast<std::byte*>(memory_->images()) + index * bytes, pixels,
                   static_cast<std::size_t>(count * bytes));
}

std::vector<float> Session::read(const PersistentTensor& tensor, int member) const {
  const PersistentTensor* const one = &tensor;
  return std::move(read({&one, 1}, member).front());
}

std::vector<std::vector<float>> Session::read(std::span<const PersistentTensor* const> tensors,
                                              int member) const {
  const bool on_host = options_.backend != kernels::Backend::cuda;
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::byte>> copies;  // with the layouts of the device
  for (const PersistentTensor* tensor : tensors) {
    values.emplace_back(on_host ? static_cast<std::size_t>(tensor->desc.shape.elements()) : 0);
    copies.emplace_back(on_host ? 0 : tensor->desc.bytes());
  }
  {
    const Admission admitted = use_memory();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const void* const address = memory_->of_member(tensors[i]->address, member);
      if (on_host)
        kernels::to_row_major(tensors[i]->desc, address, values[i].data());
      else
        kernels::copy_out(options_.backend, copies[i].data(), address, copies[i].size(),
                          kernels::After::nothing);
    }
  }
  for (std::size_t i = 0; !on_host && i < tensors.size(); ++i) {
    values[i].resize(static_cast<std::size_t>(tensors[i]->desc.shape.elements()));
    kernels::to_row_major(tensors[i]->desc, copies[i].data(), values[i].data());
    copies[i] = {};
  }
  return values;
}

void Session::write(const PersistentTensor& tensor, const std::vector<float>& row_major, int member) {
  const Admission admitted = use_memory();
  copies_are_stale_ = true;
  void* const address = memory_->of_member(tensor.address, member);
  if (options_.backend != kernels::Backend::cuda)
    return kernels::from_row_major(tensor.desc, row_major.data(), address);
  std::vector<std::byte> bytes(tensor.desc.bytes());
  kernels::from_row_major(tensor.desc, row_major.data(), bytes.data());
  kernels::copy_in(options_.backend, address, bytes.data(), bytes.size(), kernels::After::nothing);
}

void Session::average_states() {
  const Admission admitted = use_memory();
  if (groups_.replicas->size() == 1 || options_.synchronised_batch_norm) return;
  std::vector<PersistentTensor> all = memory_->states();
  const auto& averages = memory_->averages();
  if (!averages.empty()) all.insert(all.end(), averages.end() - std::ssize(all), averages.end());
  for (const PersistentTensor& state : all) {
    groups_.replicas->all_reduce(state.address, state.desc.shape.elements(), kernels::DType::f32,
                                 comm::ReduceOp::sum, {}, state.name);
    kernels::synchronize(options_.backend);
    std::vector<float> values = read(state);
    for (float& value : values) value /= static_cast<float>(groups_.replicas->size());
    write(state, values);
  }
}

// Swaps the values through host memory, which is slow but rare. Swapping the addresses instead
// would make all programs invalid, which hold these addresses.
void Session::exchange_averages() {
  const Admission admitted = use_memory();
  const auto exchange = [&](float* a, float* b, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    std::vector<std::byte> of_a(bytes), of_b(bytes);
    kernels::copy_out(options_.backend, of_a.data(), a, bytes, kernels::After::nothing);
    kernels::copy_out(options_.backend, of_b.data(), b, bytes, kernels::After::nothing);
    kernels::copy_in(options_.backend, a, of_b.data(), bytes, kernels::After::nothing);
    kernels::copy_in(options_.backend, b, of_a.data(), bytes, kernels::After::nothing);
  };
  for (const int member : all_members_) {
    const auto own = [&](float* address) { return memory_->of_member(address, member); };
    exchange(own(memory_->flat_parameters()), own(memory_->flat_averages()), memory_->trained_elements());
    exchange(own(memory_->statistics()), own(memory_->statistics_averages()), memory_->statistics_elements());
  }
  copies_are_stale_ = true;
}

}  // namespace convoy::app
