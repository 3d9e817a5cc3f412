#include "comm/buckets.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

namespace convoy::comm {

GradientBuckets::GradientBuckets(Collectives& collectives, float* gradients,
                                 std::span<const BucketSegment> segments, const BucketSizes& sizes)
    : buckets_(plan_buckets(segments, sizeof(float), sizes)) {
  operations_.reserve(buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    operations_.push_back(collectives.prepare_all_reduce(gradients + buckets_[i].offset, buckets_[i].count,
                                                         DType::f32, fmt::format("gradients bucket {}", i)));
}

void GradientBuckets::start(int bucket, Stream stream) {
  if (bucket != started_ || bucket >= static_cast<int>(buckets_.size()))
    throw std::logic_error(fmt::format("gradient bucket {} started, expected bucket {} of {}", bucket,
                                       started_, buckets_.size()));
  operations_[bucket]->start(stream);
  ++started_;
}

void GradientBuckets::progress() {
  for (int bucket = finished_; bucket < started_; ++bucket)
    if (operations_[bucket]->progress() && bucket == finished_) ++finished_;
}

double GradientBuckets::wait_all(Stream stream) {
  if (started_ < static_cast<int>(buckets_.size()))
    throw std::logic_error(
        fmt::format("gradient bucket {} of {} was not started: its gradients are not finished", started_,
                    buckets_.size()));
  const auto begin = std::chrono::steady_clock::now();
  // Do this rank's part of all buckets before waiting for one bucket: every sum has a share that
  // this rank must add, and the other ranks wait for this share.
  for (const auto& operation : operations_) {
    progress();
    operation->wait(stream);
  }
  started_ = finished_ = 0;
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace convoy::comm
