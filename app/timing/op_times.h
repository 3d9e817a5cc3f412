// How long the operations of a compiled step take on this rank, measured in the step's own order without the step's
// memory: tensors take turns in a buffer that keeps to the limit, so a step can be timed that does not fit. What is
// computed is meaningless; where data come from (the caches, where the operation before has just left them) is as in a
// real step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/timing/launch_timer.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

struct OpTimes {
  std::vector<double> node_ms;       // of every node; 0 for what communicates
  double update_ms_per_element = 0;  // of the optimizer
};

// Both as time that passed and as what this process's threads worked for it: ranks that share a core, or the caches and the
// memory behind it, wait for each other in the one and slow each other down in the other.
struct MeasuredOps {
  OpTimes passed, worked;
  int rounds = 0;
};

struct OpSamples {
  std::vector<double> passed, worked;  // ms, launch after launch
  void add(const LaunchTime& time);
};
using StepSamples = std::vector<OpSamples>;  // of every node; none for what communicates
MeasuredOps typical_times(const StepSamples& samples);

// `control`, which the kernels read, must describe a full batch. Uses `memory_limit` bytes at most, or what the largest operation needs (0: as
// many as the step has).
class OpTimer {
 public:
  OpTimer(const CompiledGraph& step, kernels::Backend backend, const kernels::StepControl* control,
          std::int64_t memory_limit);
  ~OpTimer();
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

  void round(StepSamples& samples);  // every operation once; the very first round should warm up

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
  std::vector<bool> computes_;  // of every node
  std::unique_ptr<LaunchTimer> timer_;
};

// As many rounds as some seconds hold, three at least. Leaves the update out.
MeasuredOps measure_op_times(const CompiledGraph& step, kernels::Backend backend,
                             const kernels::StepControl* control, std::int64_t memory_limit);

// The optimizer on so many parameters, or as many as fit into the limit.
void measure_update_time(kernels::Backend backend, const kernels::StepControl* control,
                         const kernels::OptimizerProblem& optimizer, std::int64_t elements,
                         std::int64_t memory_limit, MeasuredOps& result);

std::int64_t parameter_elements(const CompiledGraph& step);

}  // namespace convoy::app
