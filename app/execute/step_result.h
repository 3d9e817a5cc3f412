// The results of a step, which Session::finish_step() returns.
#pragma once

#include <span>

namespace convoy::app {

// Sums over the samples of all ranks.
struct StepMetrics {
  double loss_sum = 0, top1 = 0, top5 = 0, samples = 0;
  double stop_requests = 0;  // number of ranks that want to stop
  StepMetrics& operator+=(const StepMetrics& other) {
    loss_sum += other.loss_sum, top1 += other.top1, top5 += other.top5, samples += other.samples;
    stop_requests += other.stop_requests;
    return *this;
  }
  double loss() const { return loss_sum / samples; }
};

struct StepResult {
  // One element per member of the session, the same on every rank. Valid until the next step is
  // finished.
  std::span<const StepMetrics> metrics;
  // [samples of a full batch, classes] of an evaluation step. Empty unless
  // StepOptions::keep_probabilities is set. Valid until the next step is started.
  std::span<const float> probabilities;
  // Milliseconds that the step waited for other ranks. On a GPU it is 0 unless
  // StepOptions::time_waits is set.
  double exposed_comm_ms = 0;
};

}  // namespace convoy::app
