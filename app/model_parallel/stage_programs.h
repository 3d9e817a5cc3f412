// Makes the program of every stage (plan.h) of a partitioned step. All programs are cut from one
// sequence of all events of the step. In this sequence every node comes after its inputs, and every
// transfer lies between its producer and its first consumer.
//
// So the programs cannot deadlock: the earliest event in the sequence that is not done can always
// be done next, even if a send blocks until its receive is posted. The transfers between two ranks
// begin in the same order at both ends, so each send meets its own receive.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "app/model_parallel/dependences.h"

namespace convoy::app {

struct CutTensor {
  TensorId tensor = -1;
  int producer = -1;  // the node that writes the tensor
  int from = 0, to = 0;
};

struct ProgramStep {
  enum class Action : std::uint8_t { run, send_begin, send_finish, receive_begin, receive_finish };
  Action action = Action::run;
  int index = -1;  // index of a node if the action is `run`, else of a transfer
  bool operator==(const ProgramStep&) const = default;
};

struct StagePrograms {
  std::vector<CutTensor> transfers;  // in the order in which the transfers begin
  std::vector<std::vector<ProgramStep>> stages;
};

// The times at which events are expected. They only influence the order of the sequence; any times
// give valid programs.
struct ExpectedTimes {
  std::vector<std::int64_t> start, finish;  // the times of each node, in any unit
  // The time at which the sender can reuse its buffer, for each pair (producer, receiving stage).
  std::map<std::pair<int, int>, std::int64_t> released;
};

// Returns times for nodes that run one after the other in the graph's order. A sender can reuse a
// buffer when the receiver reads the tensor.
ExpectedTimes sequential_times(const StepGraph& graph);

// Makes the programs of all stages. `stage_of` holds the stage of each node. Throws
// std::logic_error if nodes of one group have different stages.
StagePrograms make_stage_programs(const StepDependences& dependences, const std::vector<int>& stage_of,
                                  int stages, const ExpectedTimes& times);

}  // namespace convoy::app
