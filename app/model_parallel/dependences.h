// Finds the constraints on running a training step on several devices: which operations need the
// outputs of which others, and which operations must be on the same device.
#pragma once

#include <utility>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

// A tensor inside the step that one node, the producer, writes and another, the consumer, reads. If
// several nodes write the tensor, the producer is the last of them before the consumer.
struct TensorUse {
  int producer = -1, consumer = -1;  // positions in StepGraph::nodes
  TensorId tensor = -1;
};

struct StepDependences {
  // The uses are sorted by consumer. There is one use per pair of consumer and tensor.
  std::vector<TensorUse> uses;
  // Pairs (reader, writer) of nodes. The writer overwrites in place a tensor that the reader reads,
  // so the reader must run first.
  std::vector<std::pair<int, int>> order;
  // The group of every node. Nodes of one group must run on one device, because they share data
  // that stay on this device: a parameter with its gradient and optimizer state, running
  // statistics, the batch, the metrics, or a tensor that is updated in place. Groups are numbered
  // from 0 in the order of their first nodes. A node that shares no data is a group of its own.
  std::vector<int> group;
  int groups = 0;
};

StepDependences find_dependences(const StepGraph& graph);

// Returns a name for a tensor that outlives the step. Tensors of the training and the evaluation
// graph with the same name are the same memory. A gradient has the name of its parameter. The name
// is empty for tensors inside the step.
std::string lasting_name(const StepGraph& graph, TensorId tensor);

}  // namespace convoy::app
