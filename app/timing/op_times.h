// Measures how long each operation of a compiled step takes on this rank. The operations run in the
// order of the step. Tensors overwrite each other in a buffer of limited size, so a step that does
// not fit into memory can be timed, too. The computed numbers are meaningless, but an operation
// finds its inputs in caches as in a real step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "app/compile/compiled_graph.h"
#include "app/timing/launch_timer.h"
#include "kernels/optimizer/optimizer.h"

namespace convoy::app {

struct OpTimes {
  std::vector<double> node_ms;  // milliseconds of each node; 0 for nodes that communicate
  // Milliseconds of the optimizer's update, divided by the number of elements of all parameters.
  double update_ms_per_element = 0;
};

// The times of the same operations as wall time (`passed`) and as processor time (`worked`). The
// difference shows what slows an operation down. Ranks that share a core prolong only the wall
// time. Ranks that share caches and memory prolong both.
struct MeasuredOps {
  OpTimes passed, worked;
  int rounds = 0;
};

struct OpSamples {
  std::vector<double> passed, worked;  // in milliseconds, one element per round
  void add(const LaunchTime& time);
};
// One element per node. It has no samples for a node that communicates.
using StepSamples = std::vector<OpSamples>;
MeasuredOps typical_times(const StepSamples& samples);

// Times every operation of a step once per round. The kernels read `control`, which must describe a
// full batch. Uses at most `memory_limit` bytes (0: the bytes of all tensors of the step), or more
// if the largest operation needs more.
class OpTimer {
 public:
  OpTimer(const CompiledGraph& step, kernels::Backend backend, const kernels::StepControl* control,
          std::int64_t memory_limit);
  ~OpTimer();
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

  // Runs all operations once and appends one sample per node. The caller should discard the samples
  // of the first round, which is slower.
  void round(StepSamples& samples);

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
  std::vector<bool> computes_;  // for each node: false if the node communicates
  std::unique_ptr<LaunchTimer> timer_;
};

// Times the operations of a step over 3 to 6 rounds: at least 3, then until 1.2 seconds have
// passed. Does not time the optimizer's update.
MeasuredOps measure_op_times(const CompiledGraph& step, kernels::Backend backend,
                             const kernels::StepControl* control, std::int64_t memory_limit);

// Times the optimizer's update of `elements` parameters, or of as many as fit into the memory
// limit, and stores its times in `result`.
void measure_update_time(kernels::Backend backend, const kernels::StepControl* control,
                         const kernels::OptimizerProblem& optimizer, std::int64_t elements,
                         std::int64_t memory_limit, MeasuredOps& result);

std::int64_t parameter_elements(const CompiledGraph& step);

}  // namespace convoy::app
