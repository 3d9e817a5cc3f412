// Makes operations and steps with given costs, for tests of schedules.
#pragma once

#include <utility>
#include <vector>

#include "app/concurrency/step_load.h"

namespace convoy::app {

// Returns an operation that takes `ms` milliseconds if it runs alone. Its thread blocks fill the
// share `blocks` (1: all) of the device. Operations with the same `likeness` count as alike.
inline OpLoad op(double ms, double blocks, int likeness = 0) {
  OpLoad load;
  load.ms = ms, load.blocks = blocks, load.likeness = likeness;
  return load;
}

inline StepLoad step(std::vector<OpLoad> ops, const std::vector<std::pair<int, int>>& edges) {
  StepLoad load{std::move(ops), {}};
  load.waits.resize(load.ops.size());
  for (const auto& [from, to] : edges) load.waits[static_cast<std::size_t>(to)].push_back(from);
  return load;
}

}  // namespace convoy::app
