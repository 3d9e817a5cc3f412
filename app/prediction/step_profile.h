// What one rank does in a step and how long each operation takes: measured by `convoy bench step --layers --json`, or
// estimated from its operations and bytes.
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
  bool per_sample = true;        // false: the optimizer and its like, whose time does not depend on the batch
  bool after_gradients = false;  // waits for the reduced gradients
};

struct StepProfile {
  std::string model, precision;
  std::string backend;  // "cuda": as a GPU overlaps communication
  std::int64_t batch = 0, size = 0;
  bool measured = false;
  std::vector<TimedOperation> operations;  // in the order in which they run
  double ms() const;
  // Of the operation that runs at a random time: long ones count more.
  double typical_operation_ms() const;
};

// A file of `convoy bench step --layers --json` of one rank. The operations' times are scaled so that together they
// make the measured step: timing each by itself costs time. Throws std::runtime_error naming file and field.
StepProfile read_profile(const std::string& file);

// The step whose operations a profile is expected to have, in their order.
StepGraph predicted_graph(const Network& network, const std::string& precision, const DeviceRates& device);

// The larger of operations ÷ rate and bytes ÷ bandwidth for each operation, at least the device's launch time.
StepProfile estimate_profile(const Network& network, const std::string& precision, const DeviceRates& device);

// The step at another batch. Between measured batches in proportion, operation by operation; beyond them, and with one
// profile alone, the part above `launch_us` grows with the batch. Throws std::runtime_error where the profiles are not
// of one network.
StepProfile at_batch(const std::vector<StepProfile>& profiles, std::int64_t batch, double launch_us);

// A bucket of the gradients and the operation of the profile after which it is complete.
struct TimedBucket {
  double bytes = 0;
  std::size_t after = 0;
};
std::vector<TimedBucket> buckets_of(const Network& network, const StepProfile& profile,
                                    const comm::BucketSizes& sizes);

}  // namespace convoy::app
