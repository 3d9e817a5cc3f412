// Runs a step in the way of GLP4NN (glp4nn.h), to compare its time with that of Convoy's lanes
// (lane_choice.h). Every convolution is computed sample by sample on several streams. Only the time
// is of use: the results are wrong, since weight gradients are not summed over the samples.
#pragma once

#include <cstdint>
#include <memory>

#include "app/compile/compiled_graph.h"
#include "app/concurrency/step_load.h"
#include "app/execute/session.h"

namespace convoy::app {

class SampleStreams {
 public:
  virtual ~SampleStreams() = default;
  // Runs steps without a CUDA graph: the host launches every kernel. Returns milliseconds per step.
  virtual double time(std::int64_t steps) = 0;
  virtual int streams() const = 0;       // the most streams that one convolution uses
  virtual int convolutions() const = 0;  // convolutions that run sample by sample
};

// `train` is the compiled graph of the session's training step. glp4nn_streams() decides how many
// streams a convolution gets; the most is 32. All samples on one stream read and write the same
// addresses, since only their time is wanted. A convolution without a kernel for one sample runs
// over the whole batch.
std::unique_ptr<SampleStreams> make_sample_streams(Session& session, const CompiledGraph& train,
                                                   const StepLoad& load);

}  // namespace convoy::app
