// The program of every stage of a partitioned step. All programs are cut from one sequence of all
// events of the step. In it every node comes after its inputs, and every transfer between its
// producer and its first consumer.
// The programs cannot deadlock, even if a send blocked until its receive is posted and a rank had
// only one transfer in flight: the first event in the sequence that is not done can always be done.
// The transfers of a pair of ranks begin in the same order at both ends, which is how they are
// matched.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "app/model_parallel/dependences.h"

namespace convoy::app {

struct CutTensor {
  TensorId tensor = -1;
  int producer = -1;  // node
  int from = 0, to = 0;
};

struct ProgramStep {
  enum class Action : std::uint8_t { run, send_begin, send_finish, receive_begin, receive_finish };
  Action action = Action::run;
  int index = -1;  // of a node if the action is run, else of a transfer
  bool operator==(const ProgramStep&) const = default;
};

struct StagePrograms {
  std::vector<CutTensor> transfers;  // in the order in which they begin
  std::vector<std::vector<ProgramStep>> stages;
};

// When events are expected to happen. The times are only a preference for the order of the
// sequence: any times give valid programs.
struct ExpectedTimes {
  std::vector<std::int64_t> start, finish;  // by node, in any unit
  // By (producer, receiving stage): when the sender can reuse its buffer.
  std::map<std::pair<int, int>, std::int64_t> released;
};

// Returns times by which nodes run one after the other in the graph's order. A sender can reuse a
// buffer when the receiver reads the tensor.
ExpectedTimes sequential_times(const StepGraph& graph);

// Makes the programs. `stage_of`: by node. Throws std::logic_error if nodes of one group have
// different stages.
StagePrograms make_stage_programs(const StepDependences& dependences, const std::vector<int>& stage_of,
                                  int stages, const ExpectedTimes& times);

}  // namespace convoy::app
