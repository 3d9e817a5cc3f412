// Predicts how long operations take that run side by side on one device.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "app/concurrency/step_load.h"

namespace convoy::app {

// Operations share what they would take more of than there is: a set that would need 1.5 devices
// for blocks, bandwidth or products runs 1.5 times as slowly. So two of them take the sum of their
// work over the capacity, or as long as the longer one alone. Measured pairs correct this: a pair
// that takes longer makes every set with operations of these kinds slower.
class SideBySide {
 public:
  explicit SideBySide(const std::vector<OpLoad>& ops) : ops_(&ops) {}  // must outlive it

  // Returns how many times as long as alone the operations take while all of these run; at least 1.
  // All of them compute.
  double slowdown(std::span<const int> running) const;
  // Returns the milliseconds until both have ended, if they start at once.
  double pair_ms(int a, int b) const;
  // Both started at once and ended after `ms`. Counts for all operations that are like these.
  void learn(int a, int b, double ms);
  bool knows(int a, int b) const { return corrections_.contains(key(a, b)); }

 private:
  double by_capacity(std::span<const int> running) const;
  std::pair<int, int> key(int a, int b) const;

  const std::vector<OpLoad>* ops_;
  std::map<std::pair<int, int>, double> corrections_;  // by likeness: measured over predicted slowdown
};

}  // namespace convoy::app
