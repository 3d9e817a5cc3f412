// Predicts the time of a step on more ranks than are available. One timeline has a rank's
// operations. Another timeline has the all-reduces of its gradient buckets, which overlap with
// operations as in a real step.
#pragma once

#include <span>

#include "app/prediction/cluster.h"
#include "app/prediction/step_profile.h"

namespace convoy::app {

struct StepPrediction {
  double step_ms = 0, compute_ms = 0;
  // All all-reduces together, whether they are hidden or not.
  double communication_ms = 0;
  // The time by which communication prolongs the step.
  double exposed_comm_ms = 0;
};

StepPrediction predict_step(const StepProfile& profile, std::span<const TimedBucket> buckets,
                            const Cluster& cluster, int ranks);

}  // namespace convoy::app
