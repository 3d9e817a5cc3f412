// Predicts how much slower operations are if they run at the same time on one device.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "app/concurrency/step_load.h"

namespace convoy::app {

// Operations slow each other down if together they need more thread blocks, bandwidth or arithmetic
// than the device has: a set that would need 1.5 devices runs 1.5 times as slowly. A measured pair
// corrects the prediction for all sets that contain two operations of the same kinds.
class InterferenceModel {
 public:
  // `ops` must outlive the new object.
  explicit InterferenceModel(const std::vector<OpLoad>& ops) : ops_(&ops) {}

  // Returns the factor, at least 1, by which each operation of `running` takes longer than alone
  // while all of them run at the same time. Every one must have Engine::compute.
  double slowdown(std::span<const int> running) const;
  // Returns the milliseconds until both operations have ended, if they start at the same time.
  double pair_ms(int a, int b) const;
  // Takes a measurement: operations `a` and `b` started at the same time, and both had ended after
  // `ms`. This corrects the predictions for all pairs of the same two kinds (OpLoad::likeness).
  void learn(int a, int b, double ms);
  bool knows(int a, int b) const { return corrections_.contains(key(a, b)); }

 private:
  double by_capacity(std::span<const int> running) const;
  std::pair<int, int> key(int a, int b) const;

  const std::vector<OpLoad>* ops_;
  // For a pair of values of OpLoad::likeness: the measured slowdown divided by the predicted one.
  std::map<std::pair<int, int>, double> corrections_;
};

}  // namespace convoy::app
