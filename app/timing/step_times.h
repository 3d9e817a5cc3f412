// Times a session's training steps on synthetic input.
#pragma once

#include <cstdint>
#include <vector>

#include "app/execute/session.h"

namespace convoy::app {

struct TimedSteps {
  std::vector<double> ms;      // between the ends of successive steps, with the device kept busy
  double exposed_comm_ms = 0;  // mean over the steps
  StepMetrics last;            // of the last step
  double mean() const;
};

// Fills the input of the next steps with a full batch of random images and labels, the same on each
// of `ranks` ranks and for each member. The learning rate is 0: a network that has memorised its
// one batch has gradients near zero, at which a GPU draws less power, so later steps would take
// another time than the first.
void fill_batch(Session& session, std::int64_t classes, int ranks);

// Runs `steps` training steps and times them. Collective over the session's ranks.
TimedSteps time_steps(Session& session, std::int64_t steps);

}  // namespace convoy::app
