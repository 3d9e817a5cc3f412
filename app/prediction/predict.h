// Predicts the time of a step on more ranks than are available, by simulating one rank. The rank
// computes its operations one after the other. Meanwhile the network runs the all-reduces of the
// gradient buckets (comm/buckets.h), one after the other, too. An all-reduce can start when all
// gradients of its bucket are computed.
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
