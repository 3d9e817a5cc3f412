// Lists the operations of one rank in a step with their times. The times were measured by `convoy
// bench step --layers --json`, or they are estimated from counts of operations and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/graph/step_graph.h"
#include "app/model/network.h"
#include "app/prediction/cluster.h"
#include "comm/bucket_plan.h"

namespace convoy::app {

struct TimedOperation {
  std::string layer, kind;
  double ms = 0;
  // Whether the time grows with the batch size, which is true except for the optimizer.
  bool per_sample = true;
  // Whether the operation waits until all gradients are summed over the ranks.
  bool after_gradients = false;
};

struct StepProfile {
  std::string model;
  Precision precision = Precision::fp32;
  // The backend that runs the operations. A GPU sums the metrics over the ranks during the backward
  // pass, so this sum takes no time of its own.
  kernels::Backend backend = kernels::Backend::cpu;
  std::int64_t batch = 0, size = 0;
  bool measured = false;
  // The operations in the order in which they run.
  std::vector<TimedOperation> operations;
  double ms() const;
  // Returns the expected time of the operation that runs at a random moment of the step. Long
  // operations count more than in a plain mean, since a random moment more often meets them.
  double typical_operation_ms() const;
};

// Reads the output of `convoy bench step --layers --json` on one rank. Operations that are timed
// one by one take longer together than the whole step. So their times are scaled until their sum is
// the time of the whole step. Throws std::runtime_error that names file and field.
StepProfile read_profile(const std::string& file);

// Returns the graph of the step that a session would run on `device`. A profile should list the
// nodes of this graph, in their order. With `norm_inputs`, convolutions compute batch norms
// (fuse_norm_inputs), as in bf16 on a Hopper GPU.
StepGraph predicted_graph(const Network& network, Precision precision, const DeviceRates& device,
                          bool norm_inputs);
// Returns whether convolutions computed batch norms in the profiled step.
bool has_norm_inputs(const StepProfile& profile);

// Estimates the time of each operation as the larger of operations / rate and bytes / bandwidth,
// but at least the launch time of the device.
StepProfile estimate_profile(const Network& network, Precision precision, const DeviceRates& device);

// Estimates the step at another batch size. Between measured batch sizes the time of each operation
// is interpolated. Outside of them, or with one profile, the part of the time above `launch_us` is
// proportional to the batch size. Throws std::runtime_error if the profiles are of different
// networks.
StepProfile at_batch(const std::vector<StepProfile>& profiles, std::int64_t batch, double launch_us);

// A bucket is a set of gradients that are summed over the ranks together (comm/buckets.h). `after`
// is the index of the operation in the profile that computes the bucket's last gradient.
struct TimedBucket {
  double bytes = 0;
  std::size_t after = 0;
};
std::vector<TimedBucket> buckets_of(const Network& network, const StepProfile& profile,
                                    const comm::BucketSizes& sizes);

}  // namespace convoy::app
