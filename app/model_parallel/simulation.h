// Simulates a step of the ranks' programs, instruction by instruction, with the rules of the
// transport:
//   - A transfer can move once it has begun at both ends and its link is free.
//   - A receiver does its share of a transfer between two operations or while it waits.
//   - A rank that finishes a transfer waits until the other rank has taken it.
#pragma once

#include <vector>

#include "app/model_parallel/shared_processors.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

struct Work {
  double ms = 0;        // alone on a processor, the host's others idle
  double slowdown = 1;  // factor on `ms` while all processors of the host are busy
};

struct TransferTime {
  double background_ms = 0;  // during which both ranks can do other work
  double receiver_ms = 0;    // during which the receiving rank does nothing else
  double link_ms = 0;        // until the next transfer between the same ranks can move
};

struct ProgramCosts {
  std::vector<Work> nodes;              // by node of the step
  std::vector<Work> updates;            // by stage; run at its end
  std::vector<TransferTime> transfers;  // in the order of StagePrograms::transfers
  SharedProcessors processors;
};

// Returns the milliseconds until the last stage has ended. Throws std::runtime_error if the
// programs wait for each other.
double simulate_programs(const StagePrograms& programs, const ProgramCosts& costs);

}  // namespace convoy::app
