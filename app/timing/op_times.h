// Measures how long the operations of a compiled step take on this rank, in the step's own order.
// Tensors take turns in a buffer that respects a memory limit, so a step can be timed that does not
// fit. The numbers computed are meaningless, but data come from the same caches as in a real step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/timing/launch_timer.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

struct OpTimes {
  std::vector<double> node_ms;       // by node; 0 for nodes that communicate
  double update_ms_per_element = 0;  // of the optimizer's update
};

// Times of the same operations as wall time (`passed`) and as processor time (`worked`). Ranks that
// share a core prolong each other's wall time; ranks that share caches and memory also prolong
// processor time.
struct MeasuredOps {
  OpTimes passed, worked;
  int rounds = 0;
};

struct OpSamples {
  std::vector<double> passed, worked;  // milliseconds, one a round
  void add(const LaunchTime& time);
};
using StepSamples = std::vector<OpSamples>;  // by node; empty for nodes that communicate
MeasuredOps typical_times(const StepSamples& samples);

// Times every operation of a step once a round. The kernels read `control`, which must describe a
// full batch. Uses at most `memory_limit` bytes (0: as many as the step has), or what the largest
// operation needs.
class OpTimer {
 public:
  OpTimer(const CompiledGraph& step, kernels::Backend backend, const kernels::StepControl* control,
          std::int64_t memory_limit);
  ~OpTimer();
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

  void round(StepSamples& samples);  // appends one sample a node; discard the first round

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
  std::vector<bool> computes_;  // by node: false if it communicates
  std::unique_ptr<LaunchTimer> timer_;
};

// Runs as many rounds as fit into 1.2 seconds, but from 3 to 6. Does not time the update.
MeasuredOps measure_op_times(const CompiledGraph& step, kernels::Backend backend,
                             const kernels::StepControl* control, std::int64_t memory_limit);

// Times the optimizer on `elements` parameters, or as many as fit into the limit, and stores the
// times in `result`.
void measure_update_time(kernels::Backend backend, const kernels::StepControl* control,
                         const kernels::OptimizerProblem& optimizer, std::int64_t elements,
                         std::int64_t memory_limit, MeasuredOps& result);

std::int64_t parameter_elements(const CompiledGraph& step);

}  // namespace convoy::app
