// The times of every instruction in a few captured steps, converted to the host's clock. CUDA
// builds only.
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

  // Returns the times of the steps recorded with clocks 0, 1, …; all of them must be finished.
  // `idle` is a stream without work.
  std::vector<TracedStep> read(const kernels::CudaStream& idle, int lanes) const;

 private:
  const Program& program_;
  std::deque<ProgramClock> clocks_;
};

}  // namespace convoy::app
