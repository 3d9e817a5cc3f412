// Times a session's training steps on synthetic input.
#pragma once

#include <cstdint>
#include <vector>

#include "app/execute/session.h"

namespace convoy::app {

struct TimedSteps {
  // Milliseconds between the ends of successive steps, while the device is kept busy.
  std::vector<double> ms;
  // Mean milliseconds per step in which the device waited for communication.
  double exposed_comm_ms = 0;
  StepMetrics last;  // the metrics of the last step
  double mean() const;
};

// Fills the input of the next steps with a full batch of random images and labels. The batch is the
// same for each member and on each of `ranks` ranks. The learning rate is 0, so that the network
// does not learn the batch: gradients near zero need less power, which would change the time of
// later steps.
void fill_batch(Session& session, std::int64_t classes, int ranks);

// Runs and times `steps` training steps. If `copy` is not null, the steps run this copy of the
// session's training program, whose lanes (execute/lane_plan.h) may differ. Collective over the
// session's ranks.
TimedSteps time_steps(Session& session, std::int64_t steps, const Program* copy = nullptr);

}  // namespace convoy::app
