// Reduces gradients over the ranks while backward goes on. The all-reduce of a bucket starts as
// soon as its gradients are finished (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
// Buckets are slices of one flat buffer, so nothing is copied.
//
// Buckets start in index order on every rank. On the host, sums are formed in rank order
// (Collectives::prepare_all_reduce), so the bits are the same in every run with the same rank count
// and for every bucket size. Nothing is allocated after construction.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/bucket_plan.h"
#include "comm/collectives.h"

namespace convoy::comm {

class GradientBuckets {
 public:
  // `gradients` is float32 memory on the host or device, wherever the collectives work. It must
  // outlive this object. Collective: all ranks give the same segments.
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const ParameterSegment> segments,
                  const BucketSizes& sizes);
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const ParameterSegment> segments)
      : GradientBuckets(collectives, gradients, segments, collectives.bucket_sizes()) {}

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int finished() const { return finished_; }  // buckets of this step that are reduced

  // Starts the all-reduce of a bucket. Call this in index order, when the bucket's gradients are
  // finished. Throws std::logic_error if the order is wrong.
  void start(int bucket, Stream stream = {});

  // Makes work that is put on `stream` from now on wait for the bucket, which must have been
  // started.
  void follow(int bucket, Stream stream) { operations_.at(bucket)->follow(stream); }

  // Does this rank's part of the reductions that were started, as far as is possible without
  // waiting. Call it between operations on a rank that has no thread to spare.
  void progress();
  // Waits for all buckets, then prepares for the next step. Returns the milliseconds that the
  // caller was held up (exposed communication). Throws std::logic_error if a bucket was not
  // started.
  double wait_all(Stream stream = {});

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<PreparedOperation>> operations_;
  int started_ = 0;   // buckets [0, started_) are started
  int finished_ = 0;  // buckets [0, finished_) are known to be finished
};

}  // namespace convoy::comm
