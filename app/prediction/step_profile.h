// The operations of one rank in a step and the time of each, measured by `convoy bench step
// --layers --json` or estimated from counts of operations and bytes.
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
  bool per_sample = true;        // false: its time does not depend on the batch, like the optimizer
  bool after_gradients = false;  // waits for the reduced gradients
};

struct StepProfile {
  std::string model;
  Precision precision = Precision::fp32;
  kernels::Backend backend = kernels::Backend::cpu;  // decides how communication overlaps
  std::int64_t batch = 0, size = 0;
  bool measured = false;
  std::vector<TimedOperation> operations;  // in the order in which they run
  double ms() const;
  // The mean time of the operation that runs at a random moment: long ones count more.
  double typical_operation_ms() const;
};

// Reads the output of `convoy bench step --layers --json` on one rank. Timing operations one by one
// costs time, so their times are scaled to sum to the measured step. Throws std::runtime_error
// naming file and field.
StepProfile read_profile(const std::string& file);

// Returns the step whose operations a profile is expected to have, in their order.
StepGraph predicted_graph(const Network& network, Precision precision, const DeviceRates& device);

// Estimates each operation as the larger of operations ÷ rate and bytes ÷ bandwidth, and at least
// the device's launch time.
StepProfile estimate_profile(const Network& network, Precision precision, const DeviceRates& device);

// Estimates the step at another batch. Between measured batches each operation is interpolated;
// outside of them, or with one profile, the time above `launch_us` grows with the batch. Throws
// std::runtime_error if the profiles are of different networks.
StepProfile at_batch(const std::vector<StepProfile>& profiles, std::int64_t batch, double launch_us);

// A bucket of the gradients and the operation of the profile after which it is complete.
struct TimedBucket {
  double bytes = 0;
  std::size_t after = 0;
};
std::vector<TimedBucket> buckets_of(const Network& network, const StepProfile& profile,
                                    const comm::BucketSizes& sizes);

}  // namespace convoy::app
