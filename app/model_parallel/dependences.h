// Who needs what in a training step: the stage of a StepGraph that decides where its operations may run.
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
  std::vector<TensorUse> uses;  // by consumer; one a (consumer, tensor)
  std::vector<std::pair<int, int>>
      order;  // first before second, with nothing to move: an in-place update after readers
  // Nodes of one group run on one device, as they share what lives there: a parameter with its gradient and
  // optimizer state, running statistics, the batch, the metrics, or a tensor updated in place. Numbered from 0 in the
  // order of their first nodes; a node with none of these is a group of its own.
  std::vector<int> group;
  int groups = 0;
};

StepDependences find_dependences(const StepGraph& graph);

// The parameter, state or other lasting tensor by which two graphs of one network (training, evaluation) know the same
// memory; empty for tensors inside the step. A gradient goes by its parameter.
std::string lasting_name(const StepGraph& graph, TensorId tensor);

}  // namespace convoy::app
