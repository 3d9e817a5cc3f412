// Chooses lanes and order of a training step: `--lanes auto`.
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
    model,     // predicted from estimated times
    measured,  // schedules were predicted from measured times, and the best of them timed
    cached     // an earlier run's measured choice
  };
  Source source = Source::model;
  LaneOrder lanes;
  std::string schedule;  // names it: "one lane", "fixed, 3 lanes", "list, 4 lanes"
  int lane_count = 1, forks = 0;
  // Milliseconds of a step. Those of `before` are of one lane; measured ones are 0 if there are
  // none.
  double predicted_ms = 0, predicted_before_ms = 0, measured_ms = 0, measured_before_ms = 0;
  double analysis_ms = 0;  // what the choice took; 0 if it was cached

  std::string text() const;  // for the configuration table
};

// Returns the text of a choice that a cache and other ranks get.
std::string write_choice(const LaneChoice& choice);
// Throws std::invalid_argument that says what is wrong, also if the lanes are not those of
// `program`.
LaneChoice read_choice(const std::string& text, const Program& program);

// Names the device and the program's instructions, their sizes and dependences.
std::string choice_key(const std::string& device, const Program& program);

// Both are deterministic, given what they are told. The choice is one lane unless more of them are
// predicted to be faster.
LaneChoice choose_by_model(const Program& program, const ResourceTable& resources, const DeviceRates& rates,
                           int most_lanes);
// Measures instructions, pairs that a schedule would run side by side, and the most promising
// schedules, within about `budget`. The fixed lanes stay unless another schedule is faster by more
// than measurements differ. A step of some 40 ms or more keeps them without being timed.
LaneChoice choose_by_measurement(const Program& program, const ResourceTable& resources,
                                 const DeviceRates& rates, int most_lanes, StepTimer& timer,
                                 std::chrono::milliseconds budget);

// The rates of the model GPU (kernels/device/gpu_model.h) in the precision of the step.
DeviceRates device_rates(const StepOptions& options);

inline constexpr std::chrono::milliseconds kAnalysisBudget{900};

// Arranges the programs of a session that was made with kAutoLanes on CUDA, before its first step;
// returns nothing for other sessions. Rank 0 of `ranks` measures the step, or takes the tuning
// file's choice, and all ranks get it. Stages of a partitioned step cannot run alone and keep fixed
// lanes. Collective over `ranks`.
std::optional<LaneChoice> choose_lanes(Session& session, const StepOptions& options,
                                       const comm::Communicator& ranks);

}  // namespace convoy::app
