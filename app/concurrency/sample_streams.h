// A step as GLP4NN ran it: every convolution is computed sample by sample, on the streams of a
// pool. A yardstick: only its time counts, since sums over the batch are not added up.
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
  // Runs steps, every kernel launched by the host. Returns the milliseconds of one.
  virtual double time(std::int64_t steps) = 0;
  virtual int streams() const = 0;       // the most that a layer uses
  virtual int convolutions() const = 0;  // that run sample by sample
};

// `train`: the compiled graph of the session's training step. A convolution of a single sample has
// the streams that the analyzer of GLP4NN gives its kernels (glp4nn.h), at most 32; the samples of
// one stream use the same addresses. Convolutions without a kernel for one sample run as in the
// step.
std::unique_ptr<SampleStreams> make_sample_streams(const Session& session, const CompiledGraph& train,
                                                   const StepLoad& load);

}  // namespace convoy::app
