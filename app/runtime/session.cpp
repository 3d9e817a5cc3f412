#include "app/runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "app/model/graph_builder.h"

namespace convoy::app {
namespace {

std::int64_t operand_bytes(const PreparedGraph& prepared, const Node& node) {
  std::int64_t bytes = 0;
  for (const auto* operands : {&node.inputs, &node.outputs})
    for (const TensorId id : *operands)
      bytes += static_cast<std::int64_t>(prepared.descs[static_cast<std::size_t>(id)].bytes());
  return bytes;
}

}  // namespace

StepMetrics& StepMetrics::operator+=(const StepMetrics& other) {
  loss_sum += other.loss_sum, top1 += other.top1, top5 += other.top5, samples += other.samples;
  return *this;
}

GraphOptions graph_options(const SessionOptions& options, const RankGroups& groups) {
  return {options.training, options.synchronised_batch_norm, groups.replicas->size(),
          options.label_smoothing};
}

Session::Session(const Network& network, const SessionOptions& options, const RankGroups& groups,
                 const StepPlacement* placement)
    : options_(options), groups_(groups), ranks_(*groups.replicas) {
  control_.seed = options.seed;
  CompiledSteps steps = compile_steps(network, options.backend, graph_options(options, groups), &control_);
  if (placement != nullptr) {
    steps = part_of_steps(steps, *placement, groups.parts->rank());
    transfers_ = std::make_unique<Transfers>(*groups.parts);
  }
  train_ = std::move(steps.train);
  evaluate_ = std::move(steps.evaluate);
  memory_ = std::make_unique<ModelMemory>(options.backend, train_ ? &*train_ : nullptr, evaluate_,
                                          kernels::optimizer_states(options.optimizer), options.memory_limit);
  initialise(train_ ? train_->graph : evaluate_.graph);
  if (train_) {
    make_buckets();
    train_program_ = bind(*train_);
    append_update(train_program_);
    append_metrics(train_program_);
  }
  evaluate_program_ = bind(evaluate_);
  append_metrics(evaluate_program_);
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

Program Session::bind(const PreparedGraph& prepared) {
  Program program;
  if (transfers_ != nullptr) transfers_->new_program();
  for (std::size_t node = 0; node < prepared.graph.nodes.size(); ++node) {
    append_node(program, prepared, node);
    if (buckets_ != nullptr && train_ && &prepared == &*train_)
      append_finished_buckets(program, prepared, node);
  }
  return program;
}

void Session::append_node(Program& program, const PreparedGraph& prepared, std::size_t index) {
  const Node& node = prepared.graph.nodes[index];
  if (node.is_all_reduce()) {
    const Tensor& tensor = prepared.graph.tensors[static_cast<std::size_t>(node.inputs[0])];
    append_all_reduce(program, ranks_, node.layer,
                      static_cast<double*>(memory_->address(prepared, node.inputs[0])),
                      tensor.shape.elements());
    return;
  }
  if (node.transfer) return append_transfer(program, prepared, node);
  std::vector<void*> inputs, outputs;
  for (const TensorId id : node.inputs) inputs.push_back(memory_->address(prepared, id));
  for (const TensorId id : node.outputs) outputs.push_back(memory_->address(prepared, id));
  program.add({node.layer, node.kind,
               prepared.kernels[index].bind({inputs, outputs, memory_->workspace(prepared, index)}),
               node.flops, operand_bytes(prepared, node)});
}

// Gradients are sent while backward goes on: a bucket starts after the node that finishes the last of its segments.
void Session::append_finished_buckets(Program& program, const PreparedGraph& prepared, std::size_t node) {
  const auto& outputs = prepared.graph.nodes[node].outputs;
  for (int bucket = 0; bucket < std::ssize(buckets_->buckets()); ++bucket) {
    const auto last =
        static_cast<std::size_t>(buckets_->buckets()[static_cast<std::size_t>(bucket)].last_segment);
    const auto parameter = static_cast<std::size_t>(memory_->segment_parameter()[last]);
    const TensorId gradient = prepared.graph.parameters[parameter].gradient;
    if (std::ranges::find(outputs, gradient) == outputs.end()) continue;
    program.add(
        {prepared.graph.nodes[node].layer, "start_bucket",
         [buckets = buckets_.get(), bucket](kernels::Stream stream) { buckets->start(bucket, stream); }});
  }
}

void Session::append_transfer(Program& program, const PreparedGraph& prepared, const Node& node) {
  const TransferEnd& end = *node.transfer;
  const TensorId id = node.inputs.empty() ? node.outputs[0] : node.inputs[0];
  Transfers* transfers = transfers_.get();
  if (end.action == TransferEnd::Action::send_begin || end.action == TransferEnd::Action::receive_begin) {
    auto* operation =
        transfers->prepare(end, memory_->address(prepared, id), prepared.descs[static_cast<std::size_t>(id)],
                           prepared.graph.tensors[static_cast<std::size_t>(id)].name);
    program.add(
        {node.layer, node.kind, [=](kernels::Stream stream) { transfers->begin(operation, stream); }});
  } else {
    append_communication(program, node.layer, node.kind, [=, operation = transfers->prepared(end)] {
      transfers->finish(operation, nullptr);
    });
  }
}

void Session::append_all_reduce(Program& program, comm::Collectives& ranks, const std::string& layer,
                                double* data, std::int64_t count) {
  all_reduces_.push_back(ranks.prepare_all_reduce(data, count, kernels::DType::f64, layer));
  append_communication(program, layer, "all_reduce", [operation = all_reduces_.back().get()] {
    operation->start(nullptr);
    operation->wait(nullptr);
  });
}

void Session::append_communication(Program& program, std::string layer, std::string kind,
                                   std::function<void()> action) {
  Instruction instruction{std::move(layer), std::move(kind), nullptr};
  instruction.communicates = true;
  instruction.launch = [this, action = std::move(action)](kernels::Stream) {
    const auto start = std::chrono::steady_clock::now();
    action();
    exposed_comm_ms_ +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  program.add(std::move(instruction));
}

void Session::append_update(Program& program) {
  if (buckets_ != nullptr)
    append_communication(program, "gradients", "wait_buckets", [this] { buckets_->wait_all(); });
  const std::int64_t elements = memory_->flat_elements();
  if (elements == 0) {  // a part without parameters
    program.add({"gradients", "squared_norm", [this](kernels::Stream) { *memory_->gradient_norm() = 0; }});
    return append_clipping(program);
  }
  const kernels::TensorDesc flat{kernels::DType::f32, {elements}, kernels::Layout::row_major, nullptr};
  kernels::OptimizerProblem problem = options_.optimizer;
  problem.segments = memory_->segments();
  kernels::KernelRequest request{{flat, flat}, {}, &control_};
  std::vector<void*> inputs{memory_->flat_parameters(), memory_->flat_gradients()};
  for (int state = 0; state < kernels::optimizer_states(problem); ++state) {
    request.inputs.push_back(flat);
    inputs.push_back(memory_->flat_optimizer_state(state));
  }
  const kernels::Kernel update = kernels::optimizer_update(options_.backend, problem, request);
  kernels::KernelRequest norm_request{
      {flat}, {{kernels::DType::f64, {1}, kernels::Layout::row_major, nullptr}}, &control_};
  const kernels::Kernel norm = kernels::squared_norm(options_.backend, {}, norm_request);
  update_workspace_.resize(std::max(update.workspace_bytes, norm.workspace_bytes) + 64);
  if (options_.clip_gradient_norm > 0)
    bind_kernel(program, "gradients", "squared_norm", norm, {memory_->flat_gradients()},
                {memory_->gradient_norm()});
  append_clipping(program);
  bind_kernel(program, "parameters", "optimizer_update", update, std::move(inputs), {});
}

void Session::append_metrics(Program& program) {
  if (groups_.world->size() > 1)
    append_all_reduce(program, *groups_.world, "metrics", memory_->metrics(), ModelMemory::kMetrics);
}

void Session::append_clipping(Program& program) {
  if (options_.clip_gradient_norm <= 0) return;
  if (transfers_ != nullptr)
    append_all_reduce(program, *groups_.parts, "gradient norm", memory_->gradient_norm(), 1);
  program.add({"gradients", "clip", [this](kernels::Stream) {
                 const double norm = std::sqrt(*memory_->gradient_norm());
                 control_.gradient_scale =
                     static_cast<float>(std::min(1.0, options_.clip_gradient_norm / norm));
               }});
}

void Session::bind_kernel(Program& program, std::string layer, std::string kind,
                          const kernels::Kernel& kernel, std::vector<void*> inputs,
                          std::vector<void*> outputs) {
  void* workspace = update_workspace_.data();
  std::size_t room = update_workspace_.size();
  std::align(64, kernel.workspace_bytes, workspace, room);
  const std::int64_t bytes =
      memory_->flat_elements() * static_cast<std::int64_t>(sizeof(float) * inputs.size());
  program.add({std::move(layer), std::move(kind), kernel.bind({inputs, outputs, workspace}), 0, bytes});
}

StepMetrics Session::run(const Program& program) {
  exposed_comm_ms_ = 0;
  // Without samples of its own a part adds nothing to the sums.
  if (!reads_labels()) std::fill_n(memory_->metrics(), 4, 0.0);
  for (const Instruction& instruction : program.instructions()) {
    instruction.launch(nullptr);
    if (buckets_ != nullptr) buckets_->progress();
    if (transfers_ != nullptr) transfers_->progress();
  }
  const double* sums = memory_->metrics();
  return {sums[0], sums[1], sums[2], sums[3], sums[4]};
}

void Session::load(const data::Batch& batch) {
  const std::int64_t floats = std::int64_t{batch.capacity} * batch.shape.bytes();  // as many as stored bytes
  if (reads_images())
    std::memcpy(memory_->images(), batch.images, static_cast<std::size_t>(floats) * sizeof(float));
  if (reads_labels())
    std::memcpy(memory_->labels(), batch.labels,
                static_cast<std::size_t>(batch.capacity) * sizeof(std::int32_t));
  control_.valid = batch.valid;
  control_.global_valid = batch.global_valid;
  control_.first_sample = static_cast<std::uint64_t>(batch.first);
}

std::vector<float> Session::read(const PersistentTensor& tensor) const {
  std::vector<float> values(static_cast<std::size_t>(tensor.desc.shape.elements()));
  kernels::to_row_major(tensor.desc, tensor.address, values.data());
  return values;
}

void Session::write(const PersistentTensor& tensor, const std::vector<float>& row_major) {
  kernels::from_row_major(tensor.desc, row_major.data(), tensor.address);
}

void Session::average_states() {
  if (ranks_.size() == 1 || options_.synchronised_batch_norm) return;
  for (const PersistentTensor& state : memory_->states()) {
    const std::span values(static_cast<float*>(state.address),
                           static_cast<std::size_t>(state.desc.shape.elements()));
    ranks_.all_reduce(values.data(), std::ssize(values), kernels::DType::f32, comm::ReduceOp::sum, nullptr,
                      state.name);
    for (float& value : values) value /= static_cast<float>(ranks_.size());
  }
}

}  // namespace convoy::app
