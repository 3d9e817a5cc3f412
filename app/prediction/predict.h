// Predicts the time of a step on more ranks than are available, by simulating one rank. Its
// operations run one after the other. The all-reduces of its gradient buckets (comm/buckets.h) run
// at the same time. Each starts when all gradients of its bucket are computed.
#pragma once

#include <span>

#include "app/prediction/cluster.h"
#include "app/prediction/step_profile.h"

namespace convoy::app {

struct StepPrediction {
  double step_ms = 0, compute_ms = 0;
  // The time of all all-reduces together, including those that computation hides.
  double communication_ms = 0;
  // The time by which communication prolongs the step.
  double exposed_comm_ms = 0;
};

StepPrediction predict_step(const StepProfile& profile, std::span<const TimedBucket> buckets,
                            const Cluster& cluster, int ranks);

}  // namespace convoy::app
