// Builds the task graph of a training step from its forward ops: adds variables, backward ops and updates.
#pragma once

#include <string>
#include <vector>

#include "partition/graph/task_graph.h"

namespace convoy::partition {

class StepBuilder {
 public:
  using Op = std::int32_t;

  // An op that does `operations` floating-point operations and writes `output_bytes`; with `parameter_bytes`
  // it has a variable. Inputs are earlier ops.
  Op forward(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
             Bytes parameter_bytes = 0);
  // The same op on the variable of an earlier one, as in a recurrent net's next step.
  Op forward_shared(std::string name, double operations, Bytes output_bytes, std::vector<Op> inputs,
                    Op owner);

  // A loss on the ops that nothing reads, then backward in reverse order: the gradient of an op sums its
  // consumers', reads the inputs kept since forward and, with a variable, also yields a weight gradient and
  // an update.
  TaskGraph finish();

 private:
  struct ForwardOp {
    std::string name;
    double operations;
    Bytes output_bytes, parameter_bytes;
    std::vector<Op> inputs;
    Op owner = kNone;  // whose variable it uses
    NodeIndex node = kNone, variable = kNone;
    std::vector<NodeIndex> gradients;         // contributions of its consumers
    std::vector<NodeIndex> weight_gradients;  // of a variable's owner: contributions of all that use it
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
