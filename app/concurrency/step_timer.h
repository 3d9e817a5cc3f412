// Measures a program's instructions and whole schedules of them on the current device.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "app/execute/session.h"

namespace convoy::app {

struct PairTime {
  double serial_ms = 0, together_ms = 0;  // one after the other; both at once, until both have ended
};

class StepTimer {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  virtual ~StepTimer() = default;
  // Returns the milliseconds of every instruction alone, with the gap to the next one. They add up
  // to a step in one lane.
  virtual std::vector<double> op_ms() = 0;
  // How much later an instruction starts if it waits for another lane.
  virtual double event_ms(int shortest) = 0;
  // The instructions of a pair must not depend on each other.
  virtual std::vector<PairTime> pairs(std::span<const std::pair<int, int>> pairs) = 0;
  // Returns the milliseconds of a step for each schedule, a median over rounds in which the
  // schedules take turns. Begins no schedule, but for the first two, and no round, but for the
  // first three, after the deadline. A schedule that was not begun takes for ever.
  virtual std::vector<double> schedules(std::span<const LaneOrder> schedules, Deadline deadline) = 0;
};

// Times a program of the session, which must outlive the timer. Leaves out what communicates and
// what makes images from stored ones. Call Session::prepare_timing() before and Session::reset()
// after.
std::unique_ptr<StepTimer> make_step_timer(const Session& session, const Program& program);

}  // namespace convoy::app
