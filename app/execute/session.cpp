#include "app/execute/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "app/compile/update_kernels.h"
#include "kernels/device/device_memory.h"

namespace convoy::app {
namespace {

std::int64_t operand_bytes(const CompiledGraph& compiled, const Node& node) {
  std::int64_t bytes = 0;
  for (const auto* operands : {&node.inputs, &node.outputs})
    for (const TensorId id : *operands)
      bytes += static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(id)].bytes());
  return bytes;
}

// All ranks ask for such memory together, so a rank that fails before it gets there asks too, for nothing.
class CollectiveMemory {
 public:
  using Ask = std::shared_ptr<std::byte> (comm::Collectives::*)(std::size_t bytes);
  CollectiveMemory(comm::Collectives* ranks, Ask ask, bool needed)
      : ranks_(ranks), ask_(ask), owed_(needed) {}
  ~CollectiveMemory() {
    if (!owed_) return;
    try {
      reserve(0);
    } catch (const std::exception&) {  // the failure under way is the one to report
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

// Running statistics are updated where they lie; every other input is only read.
void note_accesses(Instruction& instruction, const CompiledGraph& compiled, std::size_t index,
                   const ModelMemory& memory) {
  const Node& node = compiled.graph.nodes[index];
  const auto range = [&](TensorId id) -> MemoryRange {
    return {memory.address(compiled, id),
            static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(id)].bytes())};
  };
  for (const TensorId id : node.inputs) {
    const bool state = compiled.graph.tensors[static_cast<std::size_t>(id)].role == TensorRole::state;
    (state ? instruction.writes : instruction.reads).push_back(range(id));
  }
  for (const TensorId id : node.outputs) instruction.writes.push_back(range(id));
  if (const auto bytes = compiled.kernels[index].workspace_bytes; bytes > 0)
    instruction.writes.push_back({memory.workspace(compiled, index), static_cast<std::int64_t>(bytes)});
}

}  // namespace

Session::Session(const Network& network, const SessionOptions& options, const RankGroups& groups,
                 const StepPlacement* placement)
    : options_(options),
      groups_(groups),
      ranks_(*groups.replicas),
      control_memory_(options.backend, sizeof(kernels::StepControl)),
      control_(reinterpret_cast<kernels::StepControl*>(control_memory_.data())) {
  if (options.accumulate && placement != nullptr)
    throw std::invalid_argument("a step that is placed on several ranks takes its batch whole");
  const kernels::StepControl initial;
  kernels::copy_in(options.backend, control_, &initial, sizeof initial);
  // In this order a rank that fails asks for nothing: first for gradients, then for the arena.
  CollectiveMemory arena(groups.parts, &comm::Collectives::transfer_memory, placement != nullptr);
  CollectiveMemory shared(groups.replicas, &comm::Collectives::shared_memory, options.training);
  CompiledSteps steps = compile_tuned_session(network, options, groups, control_);
  if (placement != nullptr) {
    steps = part_of_steps(steps, *placement, groups.parts->rank(), stage_reuse_delay(options));
    transfers_ = std::make_unique<Transfers>(*groups.parts);
  }
  train_ = std::move(steps.train);
  evaluate_ = std::move(steps.evaluate);
  FlatLayout flat(train_ ? *train_ : evaluate_);
  const UpdateKernels update = train_ ? make_update_kernels(options_, flat, control_) : UpdateKernels{};
  MemoryRequest request{kernels::optimizer_states(options.optimizer), update.workspace_bytes(),
                        options.memory_limit, [&](std::size_t bytes) { return shared.reserve(bytes); },
                        [&](std::size_t bytes) { return ranks_.scratch_bytes(bytes); }};
  if (placement != nullptr) request.transfer_memory = [&](std::size_t bytes) { return arena.reserve(bytes); };
  request.accumulates = options.accumulate;
  request.averages = options.optimizer.average_decay > 0;
  // Parts have been made to fit.
  if (train_ && placement == nullptr && options.memory_limit > 0)
    fit_into_limit(fuse(network), flat, request);
  memory_ = std::make_unique<ModelMemory>(options.backend, train_ ? &*train_ : nullptr, evaluate_,
                                          std::move(flat), request);
  make_executor();
  initialise(train_ ? train_->graph : evaluate_.graph);
  if (train_) {
    make_buckets();
    train_program_ = bind(*train_, true);
    append_update(train_program_, update);
    append_statistics_average(train_program_);
    append_metrics(train_program_);
  }
  if (train_ && options_.accumulate) {
    part_program_ = bind(*train_, false);
    append_accumulation(part_program_, this->flat(memory_->flat_gradients()), false);
    append_metrics(part_program_);
  }
  evaluate_program_ = bind(evaluate_, false);
  append_metrics(evaluate_program_);
}

void Session::connect() {
  if (transfers_ == nullptr || options_.backend != kernels::Backend::cuda) return;
  transfers_->run_all();
  kernels::synchronize(options_.backend);
}

// All-reduces of statistics, transfers' ends, the buckets, the metrics, the gradients' norm.
int Session::most_waits() const {
  if (groups_.world->size() == 1 || !options_.time_waits) return 0;
  const auto in = [](const CompiledGraph& compiled) {
    return std::ranges::count_if(compiled.graph.nodes, [](const Node& node) {
      return node.is_all_reduce() || (node.transfer && !node.transfer->begins());
    });
  };
  return static_cast<int>(std::max(train_ ? in(*train_) : 0, in(evaluate_))) + 3;
}

void Session::make_executor() {
  if (options_.backend == kernels::Backend::cuda) {
    const bool streamed = options_.input.kind == InputOptions::Kind::streamed;
    executor_ = make_cuda_executor(*memory_, {control_, streamed, options_.lanes, most_waits()});
  } else {
    // Between two kernels of a rank whose only thread computes, this is what makes buckets and transfers move.
    const auto progress = [this] {
      if (buckets_ != nullptr) buckets_->progress();
      if (transfers_ != nullptr) transfers_->progress();
    };
    executor_ = make_host_executor(*memory_, {control_, progress, &exposed_ms_});
  }
  executor_->control().seed = options_.seed;
}

void Session::initialise(const StepGraph& graph) {
  const auto fill = [&](const PersistentTensor& tensor, const ParameterSpec& spec) {
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    app::initialize(spec, options_.seed, values.data());
    write(tensor, values);
  };
  for (std::size_t i = 0; i < graph.parameters.size(); ++i)
    fill(memory_->parameters()[i], graph.parameters[i].spec);
  for (std::size_t i = 0; i < graph.states.size(); ++i) fill(memory_->states()[i], graph.states[i].second);
}

void Session::make_buckets() {
  if (ranks_.size() == 1) return;
  std::vector<comm::ParameterSegment> segments;
  for (const kernels::ParameterSegment& segment : memory_->segments())
    segments.push_back({segment.offset, segment.count});
  buckets_ = std::make_unique<comm::GradientBuckets>(ranks_, memory_->flat_gradients(), segments);
}

Program Session::bind(const CompiledGraph& compiled, bool last_part) {
  Program program;
  if (transfers_ != nullptr) transfers_->new_program();
  if (transfers_ != nullptr && compiled.graph.metrics < 0) append_no_loss(program);
  for (std::size_t node = 0; node < compiled.graph.nodes.size(); ++node) {
    append_node(program, compiled, node);
    if (buckets_ == nullptr || !last_part) continue;
    append_finished_buckets(program, compiled, node);
    append_early_metrics(program, compiled, node);
  }
  return program;
}

void Session::append_node(Program& program, const CompiledGraph& compiled, std::size_t index) {
  const Node& node = compiled.graph.nodes[index];
  if (node.is_all_reduce()) {
    const Tensor& tensor = compiled.graph.tensors[static_cast<std::size_t>(node.inputs[0])];
    append_all_reduce(program, ranks_, node.layer,
                      static_cast<double*>(memory_->address(compiled, node.inputs[0])),
                      tensor.shape.elements());
    return;
  }
  if (node.transfer) return append_transfer(program, compiled, node);
  std::vector<void*> inputs, outputs;
  for (const TensorId id : node.inputs) inputs.push_back(memory_->address(compiled, id));
  for (const TensorId id : node.outputs) outputs.push_back(memory_->address(compiled, id));
  Instruction instruction{
      node.layer, node.kind,
      compiled.kernels[index].bind({inputs, outputs, memory_->workspace(compiled, index)}), node.flops,
      operand_bytes(compiled, node)};
  note_accesses(instruction, compiled, index, *memory_);
  program.add(std::move(instruction));
}

void Session::append_transfer(Program& program, const CompiledGraph& compiled, const Node& node) {
  const TransferEnd& end = *node.transfer;
  const bool sends = !node.inputs.empty();
  const TensorId id = sends ? node.inputs[0] : node.outputs[0];
  const kernels::TensorDesc& desc = compiled.descs[static_cast<std::size_t>(id)];
  void* const address = memory_->address(compiled, id);
  Transfers* transfers = transfers_.get();
  Instruction instruction{node.layer, node.kind, nullptr, 0, static_cast<std::int64_t>(desc.bytes())};
  (sends ? instruction.reads : instruction.writes).push_back({address, instruction.bytes});
  if (end.begins()) {
    auto* operation =
        transfers->prepare(end, address, desc, compiled.graph.tensors[static_cast<std::size_t>(id)].name);
    instruction.launch = [=](kernels::Stream stream) { transfers->begin(operation, stream); };
    program.add(std::move(instruction));
  } else {
    append_communication(program, std::move(instruction),
                         [=, operation = transfers->prepared(end)](kernels::Stream stream) {
                           transfers->finish(operation, stream);
                         });
  }
}

void Session::start(const Program& program, bool stop_requested) {
  if (copies_are_stale_) refresh_copies();
  executor_->start(program, stop_requested);
}

StepMetrics Session::evaluate(data::BatchSource& source, std::int64_t first_resident) {
  StepMetrics sum;
  for (std::int64_t step = 0; step < source.steps_per_epoch(); ++step) {
    load(source.next(), first_resident);
    start_evaluate_step();
    if (steps_under_way() > steps_ahead()) sum += finish_step();
  }
  while (steps_under_way() > 0) sum += finish_step();
  return sum;
}

void Session::put_image(std::int64_t index, const std::uint8_t* pixels, std::int64_t count) {
  const std::int64_t bytes = options_.input.stored.bytes();
  kernels::copy_in(options_.backend, static_cast<std::byte*>(memory_->images()) + index * bytes, pixels,
                   static_cast<std::size_t>(count * bytes));
}

std::vector<float> Session::read(const PersistentTensor& tensor) const {
  std::vector<float> values(static_cast<std::size_t>(tensor.desc.shape.elements()));
  if (options_.backend != kernels::Backend::cuda) {
    kernels::to_row_major(tensor.desc, tensor.address, values.data());
    return values;
  }
  std::vector<std::byte> bytes(tensor.desc.bytes());
  kernels::copy_out(options_.backend, bytes.data(), tensor.address, bytes.size());
  kernels::to_row_major(tensor.desc, bytes.data(), values.data());
  return values;
}

void Session::write(const PersistentTensor& tensor, const std::vector<float>& row_major) {
  copies_are_stale_ = true;
  if (options_.backend != kernels::Backend::cuda)
    return kernels::from_row_major(tensor.desc, row_major.data(), tensor.address);
  std::vector<std::byte> bytes(tensor.desc.bytes());
  kernels::from_row_major(tensor.desc, row_major.data(), bytes.data());
  kernels::copy_in(options_.backend, tensor.address, bytes.data(), bytes.size());
}

void Session::average_states() {
  if (ranks_.size() == 1 || options_.synchronised_batch_norm) return;
  std::vector<PersistentTensor> all = memory_->states();
  const auto& averages = memory_->averages();
  if (!averages.empty()) all.insert(all.end(), averages.end() - std::ssize(all), averages.end());
  for (const PersistentTensor& state : all) {
    ranks_.all_reduce(state.address, state.desc.shape.elements(), kernels::DType::f32, comm::ReduceOp::sum,
                      {}, state.name);
    std::vector<float> values = read(state);
    for (float& value : values) value /= static_cast<float>(ranks_.size());
    write(state, values);
  }
}

// Through the host: a test of the averages is rare, and no step has to be bound to other addresses.
void Session::exchange_averages() {
  const auto exchange = [&](float* a, float* b, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    std::vector<std::byte> of_a(bytes), of_b(bytes);
    kernels::copy_out(options_.backend, of_a.data(), a, bytes);
    kernels::copy_out(options_.backend, of_b.data(), b, bytes);
    kernels::copy_in(options_.backend, a, of_b.data(), bytes);
    kernels::copy_in(options_.backend, b, of_a.data(), bytes);
  };
  exchange(memory_->flat_parameters(), memory_->flat_averages(), memory_->flat_elements());
  exchange(memory_->statistics(), memory_->statistics_averages(), memory_->statistics_elements());
  copies_are_stale_ = true;
}

}  // namespace convoy::app
