// What every stage of a partitioned step does, in order. All programs are cut from one sequence of everything that
// happens in the step, in which every node comes after what it needs and every transfer between its producer and its
// first consumer. So they cannot wait for each other in a circle, even if a send blocked until its receive is posted
// and every rank had only one transfer under way: whatever comes first in the sequence among what is not done can be
// done. And the transfers of a pair of ranks begin in the same order at both ends, which is how they are matched.
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
  int index = -1;  // of a node or a transfer
  bool operator==(const ProgramStep&) const = default;
};

struct StagePrograms {
  std::vector<CutTensor> transfers;  // in the order in which they begin
  std::vector<std::vector<ProgramStep>> stages;
};

// When things are expected to happen: only a preference, from which the sequence is made. Any times give valid programs.
struct ExpectedTimes {
  std::vector<std::int64_t> start, finish;  // of every node
  std::map<std::pair<int, int>, std::int64_t>
      released;  // (producer, to): when the sender has its buffer back
};

// One node after the other, as they stand in the graph; buffers come back when the receiver reads the tensor.
ExpectedTimes sequential_times(const StepGraph& graph);

// `stage_of` every node. Nodes of one group must have one stage; throws std::logic_error otherwise.
StagePrograms make_stage_programs(const StepDependences& dependences, const std::vector<int>& stage_of,
                                  int stages, const ExpectedTimes& times);

}  // namespace convoy::app
