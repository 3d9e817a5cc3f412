// How long a session's training steps take, on synthetic input.
#pragma once

#include <cstdint>
#include <vector>

#include "app/execute/session.h"

namespace convoy::app {

struct TimedSteps {
  std::vector<double> ms;      // between the ends of successive steps, with the device kept busy
  double exposed_comm_ms = 0;  // mean
  StepMetrics last;
  double mean() const;
};

// Makes the next steps' input a full batch of random images and labels, the same on each of `ranks` ranks. Nothing is learnt: a
// network that comes to know its one batch by heart has gradients near zero, at which a GPU draws less power, so that steps
// would differ from the first.
void fill_batch(Session& session, std::int64_t classes, int ranks);

// Collective over the session's ranks.
TimedSteps time_steps(Session& session, std::int64_t steps);

}  // namespace convoy::app
