#include "app/prediction/predict.h"

#include <algorithm>

namespace convoy::app {
namespace {

// The bytes of metrics that are summed over the ranks in every step: loss, two accuracies, number
// of samples and requests to stop.
constexpr double kMetricsBytes = 5 * sizeof(double);

}  // namespace

StepPrediction predict_step(const StepProfile& profile, std::span<const TimedBucket> buckets,
                            const Cluster& cluster, int ranks) {
  StepPrediction result;
  result.compute_ms = profile.ms();
  const double operation_us = profile.typical_operation_ms() * 1e3;
  double now = 0, network_free = 0;  // milliseconds since the step began
  std::size_t next = 0;
  for (std::size_t i = 0; i < profile.operations.size(); ++i) {
    if (profile.operations[i].after_gradients) now = std::max(now, network_free);
    now += profile.operations[i].ms;
    for (; ranks > 1 && next < buckets.size() && buckets[next].after <= i; ++next) {
      const double ms = cluster.gradients_us(buckets[next].bytes, ranks) * 1e-3;
      const double overlap = cluster.overlap(operation_us, buckets[next].bytes, ranks);
      result.communication_ms += ms;
      // The network sums one bucket at a time, so the bucket waits until the network is free. The
      // time that computation cannot hide delays the computation.
      network_free = std::max(now, network_free) + ms;
      now += (1 - overlap) * ms;
    }
  }
  const double metrics_ms = cluster.all_reduce_us(kMetricsBytes, ranks) * 1e-3;
  result.communication_ms += metrics_ms;
  // A GPU sums the metrics during the backward pass on a separate stream, so they add no time. A
  // CPU sums them at the end.
  result.step_ms = std::max(now, network_free) + (profile.backend == kernels::Backend::cuda ? 0 : metrics_ms);
  result.exposed_comm_ms = result.step_ms - result.compute_ms;
  return result;
}

}  // namespace convoy::app
