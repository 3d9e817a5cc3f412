// Measures single instructions, pairs of instructions, and whole schedules (schedule.h) of a
// program on the current GPU.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "app/execute/program.h"
#include "app/execute/session.h"

namespace convoy::app {

struct PairTime {
  // The time of both instructions one after the other, and the time until both have ended if they
  // start together.
  double serial_ms = 0, together_ms = 0;
};

class StepTimer {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  virtual ~StepTimer() = default;
  // Returns for every instruction its milliseconds alone, with the gap to the next instruction. So
  // the sum is about the time of a step in one lane.
  virtual std::vector<double> op_ms() = 0;
  // Returns how many milliseconds later an instruction starts if it waits for another lane.
  // Measures with the instruction `shortest`. It should be a short instruction, so that the delay
  // is a large fraction of the measured time.
  virtual double event_ms(int shortest) = 0;
  // Times pairs of instructions. The two instructions of a pair must not depend on each other.
  virtual std::vector<PairTime> pairs(std::span<const std::pair<int, int>> pairs) = 0;
  // Returns for each schedule the milliseconds of a step. First captures one CUDA graph per
  // schedule. After the deadline it captures only the first two schedules, and the others get
  // infinity. Then every round times all captured schedules, and the median over the rounds counts.
  // After three rounds, another round begins only before the deadline.
  virtual std::vector<double> schedules(std::span<const LaneOrder> schedules, Deadline deadline) = 0;
};

// Makes a timer for a program of the session. Session and program must outlive the timer. The timer
// leaves out instructions that communicate, and those that make images from stored pixels. Call
// SessionTools::prepare_timing() before timing, and SessionTensors::reset() afterwards, because
// timing spoils the session's memory.
std::unique_ptr<StepTimer> make_step_timer(Session& session, const Program& program);

}  // namespace convoy::app
