#include "comm/buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace convoy::comm {

GradientBuckets::GradientBuckets(Collectives& collectives, float* gradients,
                                 std::span<const ParameterSegment> segments, const BucketSizes& sizes)
    : buckets_(plan_buckets(segments, sizeof(float), sizes)), segment_ready_(segments.size(), 0) {
  operations_.reserve(buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    operations_.push_back(collectives.prepare_all_reduce(gradients + buckets_[i].offset, buckets_[i].count,
                                                         DType::f32, fmt::format("gradients bucket {}", i)));
}

void GradientBuckets::ready(int segment, Stream stream) {
  if (segment < 0 || segment >= static_cast<int>(segment_ready_.size()))
    throw std::invalid_argument(
        fmt::format("gradient segment {}, expected one from 0 to {}", segment, segment_ready_.size() - 1));
  std::uint8_t& flag = segment_ready_[static_cast<std::size_t>(segment)];
  if (flag != 0)
    throw std::logic_error(fmt::format("gradient segment {} is ready twice in one step", segment));
  flag = 1;
  const auto complete = [this](const Bucket& bucket) {
    return std::all_of(segment_ready_.begin() + bucket.first_segment,
                       segment_ready_.begin() + bucket.last_segment + 1,
                       [](std::uint8_t r) { return r != 0; });
  };
  while (started_ < static_cast<int>(buckets_.size()) &&
         complete(buckets_[static_cast<std::size_t>(started_)]))
    start(started_, stream);
}

void GradientBuckets::start(int bucket, Stream stream) {
  if (bucket != started_ || bucket >= static_cast<int>(buckets_.size()))
    throw std::logic_error(fmt::format("gradient bucket {} started, expected bucket {} of {}", bucket,
                                       started_, buckets_.size()));
  operations_[static_cast<std::size_t>(bucket)]->start(stream);
  ++started_;
}

void GradientBuckets::progress() {
  for (int bucket = finished_; bucket < started_; ++bucket)
    if (operations_[static_cast<std::size_t>(bucket)]->progress() && bucket == finished_) ++finished_;
}

double GradientBuckets::wait_all(Stream stream) {
  if (started_ < static_cast<int>(buckets_.size()))
    throw std::logic_error(
        fmt::format("gradient bucket {} of {} was not started: its gradients are not finished", started_,
                    buckets_.size()));
  const auto begin = std::chrono::steady_clock::now();
  // A wait for the first bucket alone would leave this rank's part of the others undone.
  for (const auto& operation : operations_) {
    progress();
    operation->wait(stream);
  }
  std::fill(segment_ready_.begin(), segment_ready_.end(), std::uint8_t{0});
  started_ = finished_ = 0;
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace convoy::comm
