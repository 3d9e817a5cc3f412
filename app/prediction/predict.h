// How long a step takes on more ranks than are at hand: one rank's operations on one timeline, its buckets' all-reduces
// on another, as the trainer overlaps them.
#pragma once

#include <span>

#include "app/prediction/cluster.h"
#include "app/prediction/step_profile.h"

namespace convoy::app {

struct StepPrediction {
  double step_ms = 0, compute_ms = 0;
  double communication_ms = 0;  // of all all-reduces, hidden or not
  double exposed_comm_ms = 0;   // of it, what the step is longer for
};

StepPrediction predict_step(const StepProfile& profile, std::span<const TimedBucket> buckets,
                            const Cluster& cluster, int ranks);

}  // namespace convoy::app
