// Predicts the time of a partitioned step by simulating the programs of its stages (plan.h),
// instruction by instruction. Each stage runs on a rank. Transfers between ranks follow these
// rules:
//   - A transfer can move when both ends have begun it and its link is free.
//   - A receiver does its part of the work of a transfer between two operations or while it waits.
//   - A rank that finishes a send waits until the receiver has taken the tensor.
#pragma once

#include <vector>

#include "app/model_parallel/shared_processors.h"
#include "app/model_parallel/stage_programs.h"

namespace convoy::app {

struct Work {
  // Milliseconds if the stage has a processor for itself and the host's other processors are idle.
  double ms = 0;
  // The factor by which `ms` grows while all processors of the host are busy.
  double slowdown = 1;
};

struct TransferTime {
  // Milliseconds from the start of the transfer to the arrival of the tensor, in which both ranks
  // can do other work.
  double background_ms = 0;
  // Milliseconds that the receiving rank then spends on taking the tensor, without doing other
  // work.
  double receiver_ms = 0;
  // Milliseconds from the start of the transfer until the next transfer between these ranks can
  // start.
  double link_ms = 0;
};

struct ProgramCosts {
  std::vector<Work> nodes;  // the work of each node of the step
  // The optimizer's update of each stage, which runs after all nodes of the stage.
  std::vector<Work> updates;
  std::vector<TransferTime> transfers;  // in the order of StagePrograms::transfers
  SharedProcessors processors;
};

// Returns the milliseconds until the last stage has ended. Throws std::runtime_error if the
// programs wait for each other forever.
double simulate_programs(const StagePrograms& programs, const ProgramCosts& costs);

}  // namespace convoy::app
