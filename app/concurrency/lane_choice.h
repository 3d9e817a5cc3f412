// Implements `--lanes auto`: chooses for every instruction of a training step its lane and its
// place in the order of launches. Lanes are sequences of instructions that run at the same time
// (lane_plan.h). A schedule is one such choice for all instructions (schedule.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/concurrency/schedule.h"
#include "app/concurrency/step_timer.h"
#include "comm/communicator.h"

namespace convoy::app {

struct LaneChoice {
  enum class Source : std::uint8_t {
    model,  // predicted from estimated times
    // The operations were timed, and the times of several schedules were predicted from that. The
    // schedules with the best predictions were timed, too, if there was time for that.
    measured,
    cached  // an earlier run's measured choice
  };
  Source source = Source::model;
  LaneOrder lanes;
  std::string schedule;  // its name: "one lane", "fixed, 3 lanes", "list, 4 lanes, caution 1"
  int lane_count = 1, forks = 0;
  // Milliseconds of a step with this choice, and in the fields `…_before_ms` of a step in one lane.
  // The measured times are 0 if nothing was measured.
  double predicted_ms = 0, predicted_before_ms = 0, measured_ms = 0, measured_before_ms = 0;
  double analysis_ms = 0;  // milliseconds that it took to choose

  std::string text() const;  // one line for the table that a run prints first
};

// Returns the choice as JSON, for the tuning file and for other ranks.
std::string write_choice(const LaneChoice& choice);
// Reads the JSON that write_choice() returned. Throws std::invalid_argument that says what is wrong
// if the text is not valid or if the lanes do not fit the instructions of `program`.
LaneChoice read_choice(const std::string& text, const Program& program);

// Returns the key of a choice in the tuning file. It contains the device's name and a hash of the
// program's instructions, so a changed step does not find an old choice.
std::string choice_key(const std::string& device, const Program& program);

// Chooses by predictions from estimated times, without running anything. Equal arguments give equal
// choices. Chooses one lane unless several lanes are predicted to be faster.
LaneChoice choose_by_model(const Program& program, const ResourceTable& resources,
                           const DeviceThroughput& rates, int most_lanes);
// Chooses by measurements within about the time `budget`. Measures instructions, then pairs that
// would run at the same time, then the schedules with the best predictions. Chooses fixed_lanes()
// unless another schedule is faster by more than the noise of measurements. A step of about 40 ms
// or more is too long to measure and gets fixed_lanes().
LaneChoice choose_by_measurement(const Program& program, const ResourceTable& resources,
                                 const DeviceThroughput& rates, int most_lanes, StepTimer& timer,
                                 std::chrono::milliseconds budget);

// Returns the rates of the reference GPU (kernels/device/gpu_model.h) in the precision of the step.
DeviceThroughput device_throughput(const StepOptions& options);

inline constexpr std::chrono::milliseconds kAnalysisBudget{900};

// Chooses lanes for the training programs of a session and arranges the programs accordingly.
// Returns the choice. Does nothing and returns nothing unless the session was made with kAutoLanes
// on CUDA, or if its step is a stage of a partitioned step (model_parallel/plan.h): a stage cannot
// be timed alone and keeps fixed lanes. Call it before the first step. Collective over `ranks`:
// rank 0 takes the choice from the tuning file, or measures the step, and sends it to all ranks.
std::optional<LaneChoice> choose_lanes(Session& session, const StepOptions& options,
                                       const comm::Communicator& ranks);

}  // namespace convoy::app
