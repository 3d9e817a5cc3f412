// Builds the task graph of a training step from its forward ops. Adds variables, backward ops and
// updates.
#pragma once

#include <string>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class StepBuilder {
 public:
  using Op = std::int32_t;

  // Adds an op that does `operations` floating-point operations and writes `output_bytes`. If
  // `parameter_bytes` is above 0, the op has a variable. Inputs are earlier ops.
  Op forward(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
             Bytes parameter_bytes = 0);
  // Adds an op that uses the variable of an earlier op, like the next time step of a recurrent
  // network.
  Op forward_shared(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
                    Op owner);

  // Adds a loss that reads all ops without consumers, then a backward op for each op in reverse
  // order. A backward op reads the inputs of its forward op and the sum of the gradients that the
  // forward op's consumers return. An op that uses a variable also gets a weight gradient, and an
  // op that owns a variable gets an update. Returns the graph.
  TaskGraph finish();

 private:
  struct ForwardOp {
    std::string name;
    double operations;
    Bytes output_bytes, parameter_bytes;
    std::vector<Op> inputs;
    Op owner = kNone;  // op whose variable this op uses; kNone if it uses none
    NodeIndex node = kNone, variable = kNone;
    std::vector<NodeIndex> gradients;  // one gradient from each consumer
    // If the op owns a variable: one gradient from each op that uses it.
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
