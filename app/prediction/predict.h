// Predicts the time of a step on more ranks than are at hand: one timeline holds a rank's
// operations, another its buckets' all-reduces, which overlap as in the trainer.
#pragma once

#include <span>

#include "app/prediction/cluster.h"
#include "app/prediction/step_profile.h"

namespace convoy::app {

struct StepPrediction {
  double step_ms = 0, compute_ms = 0;
  double communication_ms = 0;  // all all-reduces together, hidden or not
  double exposed_comm_ms = 0;   // the time that it adds to the step
};

StepPrediction predict_step(const StepProfile& profile, std::span<const TimedBucket> buckets,
                            const Cluster& cluster, int ranks);

}  // namespace convoy::app
