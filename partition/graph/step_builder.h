// Builds the task graph of a training step from its forward ops, by adding variables, backward ops
// and updates.
#pragma once

#include <string>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class StepBuilder {
 public:
  using Op = std::int32_t;

  // Adds an op with `operations` floating-point operations and an output of `output_bytes` bytes.
  // `inputs` are earlier ops. If `parameter_bytes` is above 0, the op owns a variable of this size.
  Op forward(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
             Bytes parameter_bytes = 0);
  // Adds an op that uses the variable of the earlier op `owner`, as the later time steps of a
  // recurrent network do.
  Op forward_shared(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
                    Op owner);

  // Adds a loss that reads all ops without consumers. Then adds a backward op for each op, in
  // reverse order. A backward op reads the inputs of its forward op, and the sum of the gradients
  // from the consumers of the forward op. Each op that uses a variable gets an op for the weight
  // gradient, and each op that owns a variable gets an update. Returns the graph.
  TaskGraph finish();

 private:
  struct ForwardOp {
    std::string name;
    double operations;
    Bytes output_bytes, parameter_bytes;
    std::vector<Op> inputs;
    Op owner = kNone;  // op whose variable this op uses; kNone if it uses none
    NodeIndex node = kNone, variable = kNone;
    std::vector<NodeIndex> gradients;  // one gradient from each consumer of the op
    // The gradients of the op's own variable, one from each op that uses the variable.
    std::vector<NodeIndex> weight_gradients;
  };
  NodeIndex add(const std::string& name, double operations, Bytes output_bytes,
                const std::vector<NodeIndex>& inputs, Bytes resident_bytes = 0);
  void add_forward(ForwardOp& op);
  NodeIndex sum(const std::string& name, Bytes bytes, const std::vector<NodeIndex>& gradients);
  void add_backward(ForwardOp& op);

  std::vector<ForwardOp> ops_;
  TaskGraphBuilder builder_{"generated graph"};
  NodeIndex count_ = 0;
};

}  // namespace convoy::partition
