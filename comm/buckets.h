// Reduces the gradients over the ranks while backward goes on: as soon as a bucket's gradients are finished
// its all-reduce starts, after Li et al., "PyTorch Distributed" (VLDB 2020), section 3.2. The buckets are
// slices of the one flat buffer, so nothing is copied.
//
// Buckets start in index order on every rank, whatever the order in which the gradients finish. The sum of an
// element is formed in rank order (Collectives::prepare_all_reduce): the same bits in every run with the same
// rank count and for every bucket size. After construction nothing is allocated.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/bucket_plan.h"
#include "comm/collectives.h"

namespace convoy::comm {

class GradientBuckets {
 public:
  // `gradients` holds float32, where the collectives' data lies, and outlives this object. Collective: all ranks
  // give the same segments.
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const ParameterSegment> segments,
                  const BucketSizes& sizes);
  GradientBuckets(Collectives& collectives, float* gradients, std::span<const ParameterSegment> segments)
      : GradientBuckets(collectives, gradients, segments, collectives.bucket_sizes()) {}

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int finished() const { return finished_; }  // of this step's, in order

  // To be called in index order, when the bucket's gradients are finished. Throws std::logic_error out of order.
  void start(int bucket, Stream stream = {});

  // What is put on `stream` afterwards comes behind the bucket, which has been started.
  void follow(int bucket, Stream stream) { operations_.at(static_cast<std::size_t>(bucket))->follow(stream); }

  // Lets started buckets move on; to be called between operations of a rank without a thread to spare.
  void progress();
  // Waits until all buckets are reduced and makes the object ready for the next step. Returns the
  // milliseconds for which the caller was held up: the exposed communication. Throws std::logic_error naming
  // the bucket when one was not started.
  double wait_all(Stream stream = {});

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<PreparedOperation>> operations_;
  int started_ = 0;   // buckets [0, started_) are started
  int finished_ = 0;  // buckets [0, finished_) are known to be finished
};

}  // namespace convoy::comm
