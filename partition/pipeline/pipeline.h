// Plans a pipeline: stages of devices that work on different micro-batches at the same time.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

struct PipelineStage {
  NodeIndex first = 0, last = 0;  // positions in the topological order, both included
  DeviceIndex replicas = 1;       // number of devices that take micro-batches in turn
  Nanoseconds work = 0;           // time of one micro-batch on one device
  Nanoseconds exchange = 0;       // time per micro-batch to exchange the weight gradients of replicas
  Nanoseconds receive = 0;        // time per micro-batch to move its activations, and their gradients back
  Bytes bytes = 0;                // bytes on one device: weights, and outputs of all micro-batches in flight
  // The stage's time per micro-batch once the pipeline is full.
  Nanoseconds period() const { return std::max({work / replicas, exchange, receive}); }
};

struct Pipeline {
  std::vector<PipelineStage> stages;
  Nanoseconds period = 0;  // in the steady state, one micro-batch ends per period
  Nanoseconds fill = 0;    // time from the start of a micro-batch to its end
  Nanoseconds batch(std::int64_t micro_batches) const { return fill + (micro_batches - 1) * period; }
};

// Returns the pipeline with the shortest period, or nothing if no pipeline keeps to the memory
// limit. Dynamic programming over cuts of the topological order (Narayanan et al., "PipeDream:
// generalized pipeline parallelism for DNN training", SOSP 2019, section 3.1).
// A node's time is that of one micro-batch, forward and backward. Its parameter bytes are weights:
// r replicas exchange 2 (r - 1) / r times their size for r micro-batches. A tensor that crosses a
// cut moves once forward, and its gradient moves once back. A stage of r devices that starts at
// device d of K holds the outputs of ceil((K - d) / r) micro-batches. All links count as the
// slowest one.
// With `replicate`, a stage may have several devices. Throws std::runtime_error for a graph with
// pins, groups or too many nodes, and for devices that differ.
std::optional<Pipeline> plan_pipeline(const CostModel& cost, bool replicate);

}  // namespace convoy::partition
