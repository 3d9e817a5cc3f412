// Describes a compiled training step to the partitioner. The description has one task per node, and
// one per group of parameters for their update.
#pragma once

#include "app/compile/compiled_graph.h"
#include "app/model_parallel/dependences.h"
#include "app/timing/op_times.h"
#include "partition/graph/task_graph.h"

namespace convoy::app {

struct TaskCosts {
  OpTimes times;
  int optimizer_states = 0;
  // The cost of sums over the replicas: milliseconds per all-reduce and per byte. Both are 0 with
  // one replica.
  double reduce_ms = 0, reduce_ms_per_byte = 0;
};

// Returns the tasks. Task i is node i; the updates follow. Nodes of one group must be on one
// device. Parameters with their gradients and optimizer states, running statistics and the batch
// stay in memory; tensors inside the step are outputs of tasks. Workspaces are left out, and so is
// the memory that work in place saves. So the caller must check the arenas of a placement.
partition::TaskGraph make_step_tasks(const CompiledGraph& step, const StepDependences& dependences,
                                     const TaskCosts& costs);

}  // namespace convoy::app
