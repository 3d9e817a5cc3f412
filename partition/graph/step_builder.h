// Builds the task graph of a training step from its forward ops: adds variables, backward ops and
// updates.
#pragma once

#include <string>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class StepBuilder {
 public:
  using Op = std::int32_t;

  // Adds an op that does `operations` floating-point operations and writes `output_bytes`. With
  // `parameter_bytes` it has a variable. Inputs are earlier ops.
  Op forward(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
             Bytes parameter_bytes = 0);
  // Adds an op that uses the variable of an earlier op, as in the next step of a recurrent net.
  Op forward_shared(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
                    Op owner);

  // Adds a loss that reads all ops without readers, then backward in reverse order. The gradient of
  // an op sums the gradients from its consumers and reads the inputs kept since forward. With a
  // variable it also yields a weight gradient and an update.
  TaskGraph finish();

 private:
  struct ForwardOp {
    std::string name;
    double operations;
    Bytes output_bytes, parameter_bytes;
    std::vector<Op> inputs;
    Op owner = kNone;  // the op whose variable it uses
    NodeIndex node = kNone, variable = kNone;
    std::vector<NodeIndex> gradients;         // one from each consumer
    std::vector<NodeIndex> weight_gradients;  // for a variable's owner: one from each op that uses it
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
