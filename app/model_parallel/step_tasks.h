// Describes a compiled training step to the partitioner: one task for each node, and one for the
// update of each group of parameters.
#pragma once

#include "app/compile/compiled_graph.h"
#include "app/model_parallel/dependences.h"
#include "app/timing/op_times.h"
#include "partition/graph/task_graph.h"

namespace convoy::app {

struct TaskCosts {
  OpTimes times;
  int optimizer_states = 0;
  // The cost of summing over the replicas: of every all-reduce, and of every byte. 0 with one
  // replica.
  double reduce_ms = 0, reduce_ms_per_byte = 0;
};

// Task i is node i; the updates follow. Nodes of one group are colocated. Parameters with their
// gradients and optimizer states, running statistics and the batch are resident; tensors inside the
// step are outputs.
// Workspaces and the sharing of buffers by work in place are left out, so the caller must check the
// arenas that a placement needs.
partition::TaskGraph make_step_tasks(const CompiledGraph& step, const StepDependences& dependences,
                                     const TaskCosts& costs);

}  // namespace convoy::app
