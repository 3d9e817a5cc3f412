// Makes schedules, which distribute the instructions of a step over lanes (CUDA streams). Predicts
// how long a step takes with a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "app/concurrency/interference_model.h"

namespace convoy::app {

struct PredictedSchedule {
  double ms = 0;  // milliseconds of the whole step
  // The number of instructions that start while another one computes.
  int forks = 0;
  std::vector<double> begin, end;  // for each instruction: milliseconds since the step began
};

// Two instructions `a` and `b` that compute at the same time for `ms` milliseconds.
struct Overlap {
  int a = -1, b = -1;
  double ms = 0;
};
// Returns the pairs of instructions that compute at the same time, the longest overlap first. All
// pairs of the same two kinds of instructions (OpLoad::likeness) become one, with summed times.
std::vector<Overlap> overlaps(const StepLoad& load, const PredictedSchedule& prediction);

// Predicts the times of a step by simulating its lanes. `event_ms` is the delay of an instruction
// that waits for another lane. Throws std::invalid_argument if the lanes wait for each other in a
// circle.
PredictedSchedule predict(const StepLoad& load, const InterferenceModel& interference, const LaneOrder& lanes,
                          double event_ms);

// Parameters of list_schedule().
struct ListOptions {
  int lanes = 4;
  double event_ms = 1e-3;
  // Factor on the predicted slowdown of instructions that run at the same time. At 0 they count as
  // not slowed down, so more of them start together.
  double caution = 1;
  // If not 0, the seed of random factors from 1 to 1.5 on the priorities of the instructions
  // (list_schedule()). Different seeds give different schedules.
  std::uint32_t seed = 0;
};

// Makes a schedule by list scheduling, which is deterministic. Whenever an instruction ends, ready
// instructions start, in the order of their priority. The priority is the bottom level: the longest
// time from the start of the instruction to the end of the step. An instruction starts next to
// running ones only if all are then predicted to end earlier than one after the other.
LaneOrder list_schedule(const StepLoad& load, const InterferenceModel& interference,
                        const ListOptions& options);

// Returns for each instruction 1 if it is critical, else 0 (LaneOrder::urgent). A critical
// instruction lies on a path of dependences that takes at least nine tenths of the time of the
// longest path.
std::vector<char> urgent_ops(const StepLoad& load);

// Returns the schedule with all instructions in one lane, in the program's order.
LaneOrder one_lane(const StepLoad& load);

// Returns the number of lanes that compute. Lanes for copies do not count.
int lanes_of(const StepLoad& load, const LaneOrder& lanes);

}  // namespace convoy::app
