#include "app/runtime/shared_processors.h"

#include <algorithm>
#include <cstddef>

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

double SharedProcessors::running_in(int group, const std::vector<bool>& running) const {
  double count = 0;
  for (std::size_t part = 0; part < running.size(); ++part) count += group_of[part] == group && running[part];
  return count;
}

// Of the processors that can be busy beside one that is: how many are, from 0 to 1.
double SharedProcessors::busy_beside(int memory, const std::vector<bool>& running) const {
  double busy = 0, most = 0, parts_running = 0, parts = 0;
  for (int group = 0; group < std::ssize(processors); ++group) {
    const auto first = std::ranges::find(group_of, group) - group_of.begin();
    if (memory_of[static_cast<std::size_t>(first)] != memory) continue;
    const auto members = static_cast<double>(std::ranges::count(group_of, group));
    const double of_group = running_in(group, running);
    busy += std::min(of_group, processors[at(group)]);
    most += std::min(members, processors[at(group)]);
    parts_running += of_group, parts += members;
  }
  const double copies = replicas[at(memory)];
  // On a single processor they take turns, and find in the caches what the other has left.
  if (copies * most <= 1) busy = parts_running, most = parts;
  return copies * most > 1 ? std::max(0.0, (copies * busy - 1) / (copies * most - 1)) : 0;
}

double SharedProcessors::speed(int part, const std::vector<bool>& running, double slowdown) const {
  const int group = group_of[at(part)];
  const double share = std::min(1.0, processors[at(group)] / running_in(group, running));
  return share / (1 + (slowdown - 1) * busy_beside(memory_of[at(part)], running));
}

}  // namespace convoy::app
