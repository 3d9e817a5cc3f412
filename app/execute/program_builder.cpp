#include "app/execute/program_builder.h"

#include <algorithm>
#include <stdexcept>
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

// Notes which memory the instruction reads and writes. Memory that it updates in place counts as
// written, and its bytes count twice.
void note_accesses(Instruction& instruction, const CompiledGraph& compiled, std::size_t index,
                   const ModelMemory& memory) {
  const Node& node = compiled.graph.nodes[index];
  const auto range = [&](TensorId id) -> MemoryRange {
    return {memory.address(compiled, id),
            static_cast<std::int64_t>(compiled.descs[static_cast<std::size_t>(id)].bytes())};
  };
  for (const TensorId id : node.inputs) {
    const bool updated = compiled.graph.updates(node, id);
    (updated ? instruction.writes : instruction.reads).push_back(range(id));
    if (updated) instruction.bytes += range(id).bytes;
  }
  for (const TensorId id : node.outputs) instruction.writes.push_back(range(id));
  if (const auto bytes = compiled.kernels[index].workspace_bytes; bytes > 0)
    instruction.writes.push_back({memory.workspace(compiled, index), static_cast<std::int64_t>(bytes)});
}

// Throws std::logic_error if a node reads a parameter that an earlier node has updated.
void check_updates(const StepGraph& graph) {
  std::vector<char> updated(graph.tensors.size(), 0);
  for (const Node& node : graph.nodes) {
    const bool updates = node.is<OptimizerUpdate>();
    for (const TensorId id : node.inputs)
      if (updated[static_cast<std::size_t>(id)] && !updates)
        throw std::logic_error("internal error: " + node.layer + " reads a parameter after its update");
    if (!updates) continue;
    updated[static_cast<std::size_t>(node.inputs[0])] = 1;
    for (const TensorId id : node.outputs) updated[static_cast<std::size_t>(id)] = 1;
  }
}

}  // namespace

ProgramBuilder::ProgramBuilder(const CompiledSteps& steps, const StepOptions& options,
                               const RankGroups& groups, const ModelMemory& memory,
                               StepCommunication& communication)
    : steps_(steps), options_(options), groups_(groups), memory_(memory), communication_(communication) {}

template <typename Append>
void ProgramBuilder::for_members(const Append& append) {
  const bool together = options_.backend == kernels::Backend::cuda;
  members_ = together ? memory_.members() : 1;
  for (first_member_ = 0; first_member_ < memory_.members(); first_member_ += members_) append();
}

void ProgramBuilder::build(StepPrograms& programs) {
  if (steps_.train) for_members([&] { append_train(programs.train); });
  if (steps_.train && options_.accumulate) for_members([&] { append_train_part(programs.train_part); });
  for_members([&] {
    bind(programs.evaluate, steps_.evaluate, false);
    append_metrics(programs.evaluate, false);
  });
}

void ProgramBuilder::append_train(Program& program) {
  program.set_trains();
  append_clearing(program);
  bind(program, *steps_.train, true);
  append_update(program);
  append_statistics_average(program);
  append_metrics(program, communication_.early_metrics != nullptr);
}

void ProgramBuilder::append_train_part(Program& program) {
  program.set_trains();
  program.set_goes_on();
  append_clearing(program);
  bind(program, *steps_.train, false);
  append_accumulation(program, flat(memory_.flat_gradients()), false);
  append_metrics(program, false);
}

void ProgramBuilder::bind(Program& program, const CompiledGraph& compiled, bool last_part) {
  check_updates(compiled.graph);
  if (partitioned()) communication_.transfers->new_program();
  if (partitioned() && compiled.graph.metrics < 0) append_no_loss(program);
  for (std::size_t node = 0; node < compiled.graph.nodes.size(); ++node) {
    append_node(program, compiled, node);
    if (communication_.buckets == nullptr || !last_part) continue;
    append_finished_buckets(program, compiled, node);
    append_early_metrics(program, compiled, node);
  }
}

Instruction ProgramBuilder::of_member(const Instruction& one, int member) const {
  Instruction instruction = one;
  instruction.member = member;
  for (auto* ranges : {&instruction.reads, &instruction.writes})
    for (MemoryRange& range : *ranges)
      if (!memory_.is_shared(range.begin)) range.begin = memory_.of_member(range.begin, member);
  return instruction;
}

void ProgramBuilder::append_kernel(Program& program, Instruction one, const kernels::Kernel& kernel,
                                   const std::vector<void*>& inputs, const std::vector<void*>& outputs,
                                   void* workspace) {
  if (kernel.takes_members && members_ > 1) {
    Instruction all = of_member(one, first_member_);
    for (int member = first_member_ + 1; member < first_member_ + members_; ++member) {
      const Instruction other = of_member(one, member);
      all.reads.insert(all.reads.end(), other.reads.begin(), other.reads.end());
      all.writes.insert(all.writes.end(), other.writes.begin(), other.writes.end());
    }
    all.flops *= members_, all.bytes *= members_;
    all.launch = kernel.bind({inputs, outputs, workspace, memory_.control(), {members_, memory_.stride()}});
    return program.add(std::move(all));
  }
  for (int member = first_member_; member < first_member_ + members_; ++member) {
    const auto shifted = [&](const std::vector<void*>& operands) {
      std::vector<void*> result;
      for (void* const operand : operands) result.push_back(memory_.of_member(operand, member));
      return result;
    };
    const std::vector<void*> in = shifted(inputs), out = shifted(outputs);
    Instruction instruction = of_member(one, member);
    instruction.launch =
        kernel.bind({in, out, workspace == nullptr ? nullptr : memory_.of_member(workspace, member),
                     memory_.of_member(memory_.control(), member)});
    program.add(std::move(instruction));
  }
}

void ProgramBuilder::append_node(Program& program, const CompiledGraph& compiled, std::size_t index) {
  const Node& node = compiled.graph.nodes[index];
  if (node.is<AllReduce>()) {
    const Tensor& tensor = compiled.graph.tensors[static_cast<std::size_t>(node.inputs[0])];
    append_all_reduce(program, *groups_.replicas, node.layer,
                      static_cast<double*>(memory_.address(compiled, node.inputs[0])),
                      tensor.shape.elements());
    return;
  }
  if (node.is<Transfer>()) return append_transfer(program, compiled, node);
  const HostCopy* const copy = std::get_if<HostCopy>(&node.op);
  // The node out_finish needs no instruction: the next instruction that writes to the buffer waits
  // for the instruction of out_begin, which ends when the copy ends.
  if (copy != nullptr && copy->action == HostCopy::Action::out_finish) return;
  std::vector<void*> inputs, outputs;
  for (const TensorId id : node.inputs) inputs.push_back(memory_.address(compiled, id));
  for (const TensorId id : node.outputs) outputs.push_back(memory_.address(compiled, id));
  Instruction instruction{node.layer, std::string(node.name()), nullptr, node.flops,
                          operand_bytes(compiled, node)};
  note_accesses(instruction, compiled, index, memory_);
  instruction.reads_indices = node.is<PoolBackward>();
  instruction.fills = node.is<OptimizerUpdate>();
  // Next to other sessions, a background instruction would wait for all of their instructions, too.
  instruction.background = node.is<OptimizerUpdate>() && options_.gate == nullptr;
  if (copy != nullptr)
    instruction.engine = copy->action == HostCopy::Action::out_begin ? Engine::copy_out : Engine::copy_back;
  append_kernel(program, std::move(instruction), compiled.kernels[index], inputs, outputs,
                memory_.workspace(compiled, index));
}

void ProgramBuilder::append_transfer(Program& program, const CompiledGraph& compiled, const Node& node) {
  const Transfer& end = std::get<Transfer>(node.op);
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
