// Counts latencies in constant memory, so that a service can run for months.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace convoy::app {

// A histogram with 64 buckets for every power of two. A percentile is therefore at most 1/64 too
// large, and never too small.
class Latencies {
 public:
  using Duration = std::chrono::nanoseconds;

  // over_goal() counts the latencies above `goal`. If `goal` is 0, it counts none.
  explicit Latencies(Duration goal = Duration(0)) : goal_(goal) {}
  void add(Duration latency);

  std::int64_t count() const { return count_; }
  std::int64_t over_goal() const { return over_goal_; }
  Duration max() const { return max_; }
  // Returns the smallest latency that at least `share` (above 0, at most 1) of all latencies do not
  // exceed. Returns 0 if there are no latencies.
  Duration percentile(double share) const;

 private:
  static constexpr int kDigits = 6;               // bits of a latency that choose its bucket
  static constexpr int kBuckets = 58 << kDigits;  // enough for values of 63 bits

  Duration goal_;
  Duration max_{0};
  std::int64_t count_ = 0, over_goal_ = 0;
  std::array<std::int64_t, kBuckets> counts_{};
};

}  // namespace convoy::app
