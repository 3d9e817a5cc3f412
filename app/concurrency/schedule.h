// Schedules of a step's instructions over lanes, and the time that each is predicted to take.
#pragma once

#include <cstdint>
#include <vector>

#include "app/concurrency/side_by_side.h"

namespace convoy::app {

struct Prediction {
  double ms = 0;
  int forks = 0;                   // instructions that start next to another one that computes
  std::vector<double> begin, end;  // milliseconds, by instruction
};

// Two instructions that compute side by side.
struct Overlap {
  int a = -1, b = -1;
  double ms = 0;
};
// Returns the pairs of a prediction, the longest first. Pairs that are alike are one, with
// the sum of their times.
std::vector<Overlap> overlaps(const StepLoad& load, const Prediction& prediction);

// Simulates the lanes. `event_ms`: how much later an instruction starts if it waits for another
// lane. Throws std::invalid_argument if the lanes wait for each other in a circle.
Prediction predict(const StepLoad& load, const SideBySide& side_by_side, const LaneOrder& lanes,
                   double event_ms);

struct ListOptions {
  int lanes = 4;
  double event_ms = 1e-3;
  double caution = 1;  // scales by how much instructions side by side are predicted to be slower
  // Not 0: every bottom level counts as up to 1.5 times as much, at random, so that other schedules
  // can be tried.
  std::uint32_t seed = 0;
};

// List scheduling by bottom level: whenever an instruction ends, the ready ones start in the order
// of the time from their start to the step's end. An instruction starts next to others only if that
// is predicted to end earlier, by more than an event costs, than if it waited until they have ended
// (the rule of "SPAWN"). Deterministic.
LaneOrder list_schedule(const StepLoad& load, const SideBySide& side_by_side, const ListOptions& options);

// Says which instructions are on a way through the step that takes at least nine tenths of the
// longest one (LaneOrder::urgent).
std::vector<char> urgent_ops(const StepLoad& load);

// All instructions in one lane, in the program's order.
LaneOrder one_lane(const StepLoad& load);

int lanes_of(const StepLoad& load, const LaneOrder& lanes);  // that compute

}  // namespace convoy::app
