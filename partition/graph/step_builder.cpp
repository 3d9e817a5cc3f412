// Builds the task graph of a training step from its forward ops.
#include "partition/graph/step_builder.h"

#include <algorithm>

namespace convoy::partition {
namespace {

// Returns the time of an op on a GPU with 10 TFLOP/s, 500 GB/s and 2 µs per kernel launch.
Nanoseconds op_time(double operations, Bytes moved) {
  constexpr double kOperationsPerNs = 1e4, kBytesPerNs = 500, kLaunch = 2000;
  return static_cast<Nanoseconds>(
      kLaunch + std::max(operations / kOperationsPerNs, static_cast<double>(moved) / kBytesPerNs));
}

}  // namespace

StepBuilder::Op StepBuilder::forward(std::string name, double operations, Bytes output_bytes,
                                     std::vector<Op> inputs, Bytes parameter_bytes) {
  ops_.push_back({std::move(name),
                  operations,
                  output_bytes,
                  parameter_bytes,
                  std::move(inputs),
                  kNone,
                  kNone,
                  kNone,
                  {},
                  {}});
  const Op op = static_cast<Op>(ops_.size()) - 1;
  if (parameter_bytes > 0) ops_.back().owner = op;
  return op;
}

StepBuilder::Op StepBuilder::forward_shared(std::string name, double operations, Bytes output_bytes,
                                            std::vector<Op> inputs, Op owner) {
  const Op op = forward(std::move(name), operations, output_bytes, std::move(inputs));
  ops_.back().owner = owner;
  return op;
}

NodeIndex StepBuilder::add(const std::string& name, double operations, Bytes output_bytes,
                           const std::vector<NodeIndex>& inputs, Bytes resident_bytes) {
  TaskNode node;
  node.id = count_;
  node.name = name;
  node.time = op_time(operations, 2 * output_bytes);
  node.output_bytes = output_bytes;
  node.resident_bytes = resident_bytes;
  builder_.add_node(node);
  std::vector<NodeIndex> distinct = inputs;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const NodeIndex input : distinct) builder_.add_edge(input, count_);
  return count_++;
}

void StepBuilder::add_forward(ForwardOp& op) {
  std::vector<NodeIndex> inputs;
  for (const Op input : op.inputs) inputs.push_back(ops_[input].node);
  // The node of a variable keeps weights, gradients and one optimizer moment. Its output is the
  // weights.
  if (op.parameter_bytes > 0)
    op.variable = add(op.name + "/variable", 0, op.parameter_bytes, {}, 3 * op.parameter_bytes);
  if (op.owner != kNone) inputs.push_back(ops_[op.owner].variable);
  op.node = add(op.name, op.operations, op.output_bytes, inputs);
}

NodeIndex StepBuilder::sum(const std::string& name, Bytes bytes, const std::vector<NodeIndex>& gradients) {
  return gradients.size() == 1 ? gradients[0] : add("gradients/" + name + "/sum", 0, bytes, gradients);
}

// Adds the backward ops of one forward op. finish() passes the forward ops in reverse order. Thus
// an op that owns a variable comes after all ops that share the variable, and all gradients of the
// variable exist.
void StepBuilder::add_backward(ForwardOp& op) {
  const NodeIndex gradient = sum(op.name, op.output_bytes, op.gradients);
  std::vector<NodeIndex> kept = {gradient};
  for (const Op input : op.inputs) kept.push_back(ops_[input].node);
  if (op.owner != kNone) {
    ForwardOp& owner = ops_[op.owner];
    owner.weight_gradients.push_back(
        add("gradients/" + op.name + "/weights", op.operations, owner.parameter_bytes, kept));
    if (&owner == &op)
      add("update/" + op.name, 0, 0,
          {sum(op.name + "/weights", op.parameter_bytes, op.weight_gradients), op.variable});
    kept.push_back(owner.variable);
  }
  if (op.inputs.empty()) return;
  const NodeIndex inputs = add("gradients/" + op.name, op.operations, op.output_bytes, kept);
  for (const Op input : op.inputs) ops_[input].gradients.push_back(inputs);
}

TaskGraph StepBuilder::finish() {
  std::vector<bool> read(ops_.size(), false);
  for (ForwardOp& op : ops_) {
    add_forward(op);
    for (const Op input : op.inputs) read[input] = true;
  }
  std::vector<NodeIndex> outputs;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (!read[i]) outputs.push_back(ops_[i].node);
  const NodeIndex loss = add("loss", 0, 4, outputs);
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (!read[i]) ops_[i].gradients.push_back(loss);
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) add_backward(*op);
  return builder_.build();
}

}  // namespace convoy::partition
