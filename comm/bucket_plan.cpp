#include "comm/bucket_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::comm {
namespace {

void check(std::span<const BucketSegment> segments, std::int64_t element_bytes, const BucketSizes& sizes) {
  if (element_bytes <= 0 || sizes.bytes < element_bytes || sizes.edge_bytes < element_bytes)
    throw std::invalid_argument(fmt::format("buckets of {} and {} bytes, expected at least one element of {}",
                                            sizes.bytes, sizes.edge_bytes, element_bytes));
  std::int64_t end = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].count < 0 || segments[i].offset < end)
      throw std::invalid_argument(
          fmt::format("gradient segment {} (offset {}, count {}) overlaps or precedes the one before it, "
                      "which ends at {}",
                      i, segments[i].offset, segments[i].count, end));
    end = segments[i].offset + segments[i].count;
  }
}

// Returns the first segment of the last bucket. That bucket takes as many segments from the end as
// fit into `most` elements. Returns the number of segments if not even one fits, or if all fit; the
// last bucket is then planned like the others.
int first_of_tail(std::span<const BucketSegment> segments, std::int64_t most) {
  const int size = static_cast<int>(segments.size());
  const std::int64_t end = segments.back().offset + segments.back().count;
  int first = size;
  while (first > 0 && end - segments[static_cast<std::size_t>(first) - 1].offset <= most) --first;
  return first == 0 ? size : first;
}

class BucketPlanner {
 public:
  BucketPlanner(std::span<const BucketSegment> segments, std::int64_t first_most, std::int64_t most)
      : segments_(segments), first_most_(first_most), most_(most) {}

  // Appends buckets for the segments [first, last).
  void cover(int first, int last) {
    for (int segment = first; segment < last; ++segment) {
      const auto& [offset, count] = segments_[segment];
      if (open_ && offset + count - bucket_.offset > limit()) close();
      if (!open_) bucket_ = {offset, 0, segment, segment};
      open_ = true;
      bucket_.count = offset + count - bucket_.offset;
      bucket_.last_segment = segment;
    }
    close();
  }
  std::vector<Bucket> take() { return std::move(buckets_); }

 private:
  std::int64_t limit() const { return buckets_.empty() ? first_most_ : most_; }

  // Finishes the open bucket. If it is a single segment longer than most_, it is divided into
  // buckets of about equal length. Their starts are aligned for copy engines and vector loads.
  void close() {
    if (!open_) return;
    open_ = false;
    const std::int64_t parts = std::max<std::int64_t>(1, (bucket_.count + most_ - 1) / most_);
    constexpr std::int64_t kAlignment = 64;
    const std::int64_t equal = (bucket_.count + parts - 1) / parts;
    const std::int64_t length = std::min(most_, (equal + kAlignment - 1) / kAlignment * kAlignment);
    for (std::int64_t begin = 0; begin < bucket_.count; begin += length)
      buckets_.push_back({bucket_.offset + begin, std::min(length, bucket_.count - begin),
                          bucket_.first_segment, bucket_.last_segment});
  }

  std::span<const BucketSegment> segments_;
  std::int64_t first_most_, most_;
  std::vector<Bucket> buckets_;
  Bucket bucket_;
  bool open_ = false;
};

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const BucketSegment> segments, std::int64_t element_bytes,
                                 const BucketSizes& sizes) {
  check(segments, element_bytes, sizes);
  if (segments.empty()) return {};
  const std::int64_t edge = sizes.edge_bytes / element_bytes;
  const int tail = first_of_tail(segments, edge);
  BucketPlanner planner(segments, edge, sizes.bytes / element_bytes);
  planner.cover(0, tail);
  planner.cover(tail, static_cast<int>(segments.size()));
  return planner.take();
}

}  // namespace convoy::comm
