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
// same for each member and on each of `ranks` ranks. The learning rate is 0, so that all steps take
// the same time: a network that has memorised its batch has gradients near zero, at which a GPU
// draws less power, so later steps would take another time.
void fill_batch(Session& session, std::int64_t classes, int ranks);

// Runs `steps` training steps and times them, or as many of a copy of their program whose lanes
// differ. Collective over the session's ranks.
TimedSteps time_steps(Session& session, std::int64_t steps, const Program* copy = nullptr);

}  // namespace convoy::app
