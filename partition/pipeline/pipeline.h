// Plans a pipeline. Its stages run on different devices and process different micro-batches at the
// same time.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "partition/simulation/machine.h"

namespace convoy::partition {

struct PipelineStage {
  NodeIndex first = 0, last = 0;  // positions in the topological order, inclusive
  DeviceIndex replicas = 1;       // number of devices; each processes every replicas-th micro-batch
  Nanoseconds work = 0;           // time of one micro-batch on one device
  // Time per micro-batch to exchange weight gradients. The replicas exchange them once for every
  // `replicas` micro-batches.
  Nanoseconds exchange = 0;
  // Time per micro-batch to move its activations to this stage, and their gradients back.
  Nanoseconds receive = 0;
  // Bytes on one device: weights, and the outputs of all micro-batches that are in the pipeline at
  // once.
  Bytes bytes = 0;
  // Returns the stage's time per micro-batch when the pipeline is full.
  Nanoseconds period() const { return std::max({work / replicas, exchange, receive}); }
};

struct Pipeline {
  std::vector<PipelineStage> stages;
  Nanoseconds period = 0;  // time between the ends of two micro-batches when the pipeline is full
  Nanoseconds fill = 0;    // time from the start to the end of a single micro-batch
  Nanoseconds batch(std::int64_t micro_batches) const { return fill + (micro_batches - 1) * period; }
};

// Returns the pipeline with the shortest period, or nothing if no pipeline stays within the memory
// limit. It is found by dynamic programming over divisions of the topological order (Narayanan et
// al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019, section 3.1).
//
// The time of a node is that of one micro-batch, forward and backward. Its parameter bytes are
// weights. The r replicas of a stage exchange 2 (r - 1) / r times the size of the weights per r
// micro-batches. A tensor that goes to a later stage is moved once, and its gradient is moved back
// once. A stage of r devices that starts at device d of K holds the outputs of ceil((K - d) / r)
// micro-batches. All links are assumed to be as slow as the slowest one.
//
// If `replicate` is set, a stage may have several devices. Throws std::runtime_error for a graph
// with pins, groups or too many nodes, and for devices that differ.
std::optional<Pipeline> plan_pipeline(const CostModel& cost, bool replicate);

}  // namespace convoy::partition
