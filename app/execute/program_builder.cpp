#include "app/execute/program_builder.h"

#include <algorithm>
#include <utility>

namespace convoy::app {
namespace {

std::int64_t operand_bytes(const CompiledGraph& compiled, const Node& node) {
  std::int64_t bytes = 0;
  for (const auto* operands : {&node.inputs, &node.outputs})
    for (const TensorId id : *operands)
      bytes += static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(id)].bytes());
  return bytes;
}

// Running statistics are updated in place; every other input is only read.
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

ProgramBuilder::ProgramBuilder(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups, const ModelMemory& memory,
                               kernels::StepControl* control, StepCommunication& communication)
    : steps_(steps),
      options_(options),
      groups_(groups),
      memory_(memory),
      control_(control),
      communication_(communication) {}

StepPrograms ProgramBuilder::build() {
  StepPrograms programs;
  if (steps_.train) {
    programs.train = bind(*steps_.train, true);
    append_update(programs.train);
    append_statistics_average(programs.train);
    append_metrics(programs.train, communication_.early_metrics != nullptr);
  }
  if (steps_.train && options_.accumulate) {
    programs.train_part = bind(*steps_.train, false);
    append_accumulation(programs.train_part, flat(memory_.flat_gradients()), false);
    append_metrics(programs.train_part, false);
  }
  programs.evaluate = bind(steps_.evaluate, false);
  append_metrics(programs.evaluate, false);
  return programs;
}

Program ProgramBuilder::bind(const CompiledGraph& compiled, bool last_part) {
  Program program;
  if (partitioned()) communication_.transfers->new_program();
  if (partitioned() && compiled.graph.metrics < 0) append_no_loss(program);
  for (std::size_t node = 0; node < compiled.graph.nodes.size(); ++node) {
    append_node(program, compiled, node);
    if (communication_.buckets == nullptr || !last_part) continue;
    append_finished_buckets(program, compiled, node);
    append_early_metrics(program, compiled, node);
  }
  return program;
}

void ProgramBuilder::append_node(Program& program, const CompiledGraph& compiled, std::size_t index) {
  const Node& node = compiled.graph.nodes[index];
  if (node.is_all_reduce()) {
    const Tensor& tensor = compiled.graph.tensors[static_cast<std::size_t>(node.inputs[0])];
    append_all_reduce(program, *groups_.replicas, node.layer,
                      static_cast<double*>(memory_.address(compiled, node.inputs[0])),
                      tensor.shape.elements());
    return;
  }
  if (node.transfer() != nullptr) return append_transfer(program, compiled, node);
  std::vector<void*> inputs, outputs;
  for (const TensorId id : node.inputs) inputs.push_back(memory_.address(compiled, id));
  for (const TensorId id : node.outputs) outputs.push_back(memory_.address(compiled, id));
  Instruction instruction{
      node.layer, std::string(node.name()),
      compiled.kernels[index].bind({inputs, outputs, memory_.workspace(compiled, index), control_}),
      node.flops, operand_bytes(compiled, node)};
  note_accesses(instruction, compiled, index, memory_);
  program.add(std::move(instruction));
}

void ProgramBuilder::append_transfer(Program& program, const CompiledGraph& compiled, const Node& node) {
  const Transfer& end = *node.transfer();
  const bool sends = !node.inputs.empty();
  const TensorId id = sends ? node.inputs[0] : node.outputs[0];
  const kernels::TensorDesc& desc = compiled.descs[static_cast<std::size_t>(id)];
  void* const address = memory_.address(compiled, id);
  Transfers* transfers = communication_.transfers.get();
  Instruction instruction{node.layer, std::string(node.name()), nullptr, 0,
                          static_cast<std::int64_t>(desc.bytes())};
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

}  // namespace convoy::app
