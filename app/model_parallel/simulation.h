// How long a step of the ranks' programs takes: every instruction in its turn, with the rules of the transport. A transfer
// can move once it has begun at both ends and its link is free; what the receiving rank must do for it, it does between two of
// its operations or while it waits; and a rank that finishes a transfer waits until the other has taken it.
#pragma once

#include <vector>

#include "app/model_parallel/shared_processors.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

struct Work {
  double ms = 0;        // alone on a processor
  double slowdown = 1;  // times this with all processors of the host busy
};

struct TransferTime {
  double background_ms = 0;  // while both ranks do other things
  double receiver_ms = 0;    // of the receiving rank's time
  double link_ms = 0;        // until the next one from the same rank to the same can move
};

struct ProgramCosts {
  std::vector<Work> nodes;              // of the step
  std::vector<Work> updates;            // of every stage, at its end
  std::vector<TransferTime> transfers;  // as the programs number them
  SharedProcessors processors;
};

// Milliseconds until the last stage has ended. Throws std::runtime_error for programs that wait for each other.
double simulate_programs(const StagePrograms& programs, const ProgramCosts& costs);

}  // namespace convoy::app
