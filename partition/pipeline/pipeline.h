// A graph as a pipeline: stages of devices that work on different micro-batches at the same time.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

struct PipelineStage {
  NodeIndex first = 0, last = 0;  // of the topological order, both included
  DeviceIndex replicas = 1;       // devices that take micro-batches in turn
  Nanoseconds work = 0;           // of one micro-batch on one device
  Nanoseconds exchange = 0;       // of the replicas' weight gradients, a micro-batch
  Nanoseconds receive = 0;        // of one micro-batch's activations, and of their gradients the other way
  Bytes bytes = 0;                // of a device: weights, and outputs of all micro-batches in flight
  // In the steady state, for each micro-batch.
  Nanoseconds period() const { return std::max({work / replicas, exchange, receive}); }
};

struct Pipeline {
  std::vector<PipelineStage> stages;
  Nanoseconds period = 0;  // in the steady state a micro-batch ends as often as this
  Nanoseconds fill = 0;    // from a micro-batch's begin to its end
  Nanoseconds batch(std::int64_t micro_batches) const { return fill + (micro_batches - 1) * period; }
};

// The pipeline of the shortest period by dynamic programming over stretches of the topological
// order (Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP
// 2019, section 3.1). A node's time is that of one micro-batch, forward and backward; its parameter
// bytes are weights, whose gradients r replicas exchange at 2 (r - 1) / r times their size for r
// micro-batches; a tensor that crosses a cut moves once forward and its gradient once back. A stage
// that begins at the d-th of K devices holds the outputs of ceil((K - d) / r) micro-batches. Takes
// the slowest link for all. Devices are alike. Nothing when no cut keeps to the memory limit.
// Throws std::runtime_error for a graph with pins, groups or too many nodes and for devices that
// differ.
std::optional<Pipeline> plan_pipeline(const CostModel& cost, bool replicate);

}  // namespace convoy::partition
