#include "app/sharing/service/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace convoy::app {
namespace {

// Returns the bucket of a value. Values below 2^(digits + 1) have a bucket each. For a larger
// value, its highest bit and the `digits` bits after that bit choose the bucket.
std::size_t bucket_of(std::uint64_t value, int digits) {
  const int shift = std::max(static_cast<int>(std::bit_width(value)) - digits - 1, 0);
  return (static_cast<std::size_t>(shift) << digits) + (value >> shift);
}

std::uint64_t largest_in(std::size_t bucket, int digits) {
  if (bucket < std::size_t{2} << digits) return bucket;
  const auto shift = static_cast<int>((bucket >> digits) - 1);
  const std::uint64_t first = bucket - (static_cast<std::size_t>(shift) << digits);
  return ((first + 1) << shift) - 1;
}

}  // namespace

void Latencies::add(Duration latency) {
  latency = std::max(latency, Duration(0));
  ++counts_[bucket_of(static_cast<std::uint64_t>(latency.count()), kDigits)];
  ++count_;
  max_ = std::max(max_, latency);
  if (goal_ > Duration(0) && latency > goal_) ++over_goal_;
}

Latencies::Duration Latencies::percentile(double share) const {
  const auto rank = std::clamp<std::int64_t>(std::llround(std::ceil(share * static_cast<double>(count_))), 1,
                                             std::max<std::int64_t>(count_, 1));
  std::int64_t below = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    below += counts_[bucket];
    if (below >= rank)
      return std::min(max_, Duration(static_cast<std::int64_t>(largest_in(bucket, kDigits))));
  }
  return max_;
}

}  // namespace convoy::app
