// Finds the dependences in a training step that decide where and in which order its operations may
// run.
#pragma once

#include <utility>
#include <vector>

#include "app/graph/step_graph.h"

namespace convoy::app {

// A tensor inside the step goes from the node that wrote it last to a node that reads it.
struct TensorUse {
  int producer = -1, consumer = -1;  // positions in StepGraph::nodes
  TensorId tensor = -1;
};

struct StepDependences {
  std::vector<TensorUse> uses;  // sorted by consumer; one for each (consumer, tensor)
  // The first node must run before the second, though no tensor moves: a reader before an update in
  // place.
  std::vector<std::pair<int, int>> order;
  // The group of every node. Nodes of one group run on one device, as they share data that are kept
  // there: a parameter with its gradient and optimizer state, running statistics, the batch, the
  // metrics, or a tensor updated in place. Groups are numbered from 0 in the order of their first
  // nodes. A node that shares nothing is a group of its own.
  std::vector<int> group;
  int groups = 0;
};

StepDependences find_dependences(const StepGraph& graph);

// Returns a name for a tensor that outlives the step, by which the training and the evaluation
// graph of one network know the same memory. A gradient has its parameter's name. Empty for tensors
// inside the step.
std::string lasting_name(const StepGraph& graph, TensorId tensor);

}  // namespace convoy::app
