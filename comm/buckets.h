// Sums gradients over the ranks while the backward pass goes on. The all-reduce of a bucket starts
// as soon as its gradients are computed (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
// Buckets are slices of one buffer that holds all gradients, so nothing is copied.
//
// All ranks start the buckets in the order of their indices. On the host, values are added in rank
// order (Collectives::prepare_all_reduce), so the sums are the same to the bit in every run with
// the same number of ranks, whatever the size of the buckets. Nothing is allocated after
// construction.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/bucket_plan.h"
#include "comm/collectives.h"

namespace convoy::comm {

class GradientBuckets {
 public:
  // `gradients` is float32 memory of the host or the device, the same side on which `collectives`
  // work. It must outlive this object. Collective: all ranks pass the same segments.
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const BucketSegment> segments,
                  const BucketSizes& sizes);
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const BucketSegment> segments)
      : GradientBuckets(collectives, gradients, segments, collectives.bucket_sizes()) {}

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int finished() const { return finished_; }  // number of buckets of this step that are reduced

  // Starts the all-reduce of a bucket whose gradients are computed. Buckets must be started in the
  // order of their indices. Throws std::logic_error if the order is wrong.
  void start(int bucket, Stream stream = {});

  // Makes work that is enqueued on `stream` from now on wait for the all-reduce of the bucket,
  // which must have been started.
  void follow(int bucket, Stream stream) { operations_.at(bucket)->follow(stream); }

  // Does this rank's work for the reductions that were started, as far as that needs no waiting. A
  // rank that has no thread to spare calls this function between operations.
  void progress();
  // Waits for all buckets, then prepares for the next step. Returns the milliseconds that the
  // caller waited (exposed communication). Throws std::logic_error if a bucket was not started.
  double wait_all(Stream stream = {});

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<PreparedOperation>> operations_;
  int started_ = 0;   // buckets [0, started_) are started
  int finished_ = 0;  // buckets [0, finished_) are reduced, as far as this object knows
};

}  // namespace convoy::comm
