// The times of every instruction of a few captured steps, brought to the host's clock. CUDA builds only.
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

  // Of finished steps that were recorded with all of the clocks.
  std::vector<TracedStep> read(const kernels::CudaStream& idle, int lanes) const;

 private:
  const Program& program_;
  std::deque<ProgramClock> clocks_;
};

}  // namespace convoy::app
