// Describes a compiled training step as a graph of tasks, which the partitioner places on devices.
// Each node of the step is a task. Each group with parameters has one more task, the optimizer's
// update. A group is a set of nodes that must run on one device (StepDependences, dependences.h).
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

// Returns the tasks. Task i is node i, and the optimizer updates follow. Nodes of one group must be
// on one device. The tasks count the memory of tensors, but neither workspaces nor the memory that
// kernels save by working in place. So the caller must check whether the arenas of a placement fit.
partition::TaskGraph make_step_tasks(const CompiledGraph& step, const StepDependences& dependences,
                                     const TaskCosts& costs);

}  // namespace convoy::app
