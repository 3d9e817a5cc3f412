// Records the times of every instruction in a few captured steps and converts them to the host's
// clock. For CUDA builds only.
#pragma once

#include <deque>
#include <vector>

#include "app/execute/cuda_program_clock.h"
#include "app/execute/executor.h"

namespace convoy::app {

class StepTraces {
 public:
  StepTraces(const Program& program, int lanes, int steps);
  const Program& program() const { return program_; }
  ProgramClock& clock(int step) { return clocks_.at(static_cast<std::size_t>(step)); }

  // Returns the times of the traced steps, in their order. All of these steps must be finished.
  // `idle` must be a stream without work, because the two clocks are compared on it.
  std::vector<TracedStep> read(const kernels::CudaStream& idle, int lanes) const;

 private:
  const Program& program_;
  std::deque<ProgramClock> clocks_;
};

}  // namespace convoy::app
