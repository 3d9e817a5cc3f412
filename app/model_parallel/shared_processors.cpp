// Implements shared_processors.h. A replica is a group of ranks that computes whole steps, and each
// of its ranks runs one stage of the step (plan.h).
#include "app/model_parallel/shared_processors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Groups the stages of a replica by a resource that they share, such as a host. Other replicas that
// use the same resource are only counted, because they do the same work at the same time.
template <typename Key>
struct Groups {
  std::vector<Key> keys;
  std::vector<int> of_stage;
  // The number of replicas that use the resource of each group.
  std::vector<double> replicas;
};

template <typename KeyOf>
auto group_stages(const std::vector<comm::RankPlacement>& ranks, int stages, const KeyOf& key_of) {
  Groups<decltype(key_of(ranks[0]))> groups;
  for (int stage = 0; stage < stages; ++stage) {
    const auto key = key_of(ranks[at(stage)]);
    const auto found = std::ranges::find(groups.keys, key);
    groups.of_stage.push_back(static_cast<int>(found - groups.keys.begin()));
    if (found != groups.keys.end()) continue;
    groups.keys.push_back(key);
    const auto same = [&](const comm::RankPlacement& rank) { return key_of(rank) == key; };
    const auto members = std::count_if(ranks.begin(), ranks.end(), same);
    const auto of_replica = std::count_if(ranks.begin(), ranks.begin() + stages, same);
    groups.replicas.push_back(static_cast<double>(members) / static_cast<double>(of_replica));
  }
  return groups;
}

}  // namespace

SharedProcessors share_processors(const std::vector<comm::RankPlacement>& ranks, int stages, int threads) {
  auto by_cores =
      group_stages(ranks, stages, [](const auto& rank) { return std::pair(rank.host, rank.cores); });
  auto by_host = group_stages(ranks, stages, [](const auto& rank) { return rank.host; });
  SharedProcessors shared;
  for (std::size_t group = 0; group < by_cores.keys.size(); ++group) {
    const auto cores = static_cast<double>(by_cores.keys[group].second.size());
    shared.processors.push_back(cores / std::min<double>(threads, cores) / by_cores.replicas[group]);
  }
  shared.group_of = std::move(by_cores.of_stage);
  shared.memory_of = std::move(by_host.of_stage);
  shared.replicas = std::move(by_host.replicas);
  return shared;
}

SharedProcessors separate_processors(int stages) {
  SharedProcessors separate;
  separate.processors.assign(at(stages), 1);
  separate.replicas.assign(at(stages), 1);
  for (int stage = 0; stage < stages; ++stage) {
    separate.group_of.push_back(stage);
    separate.memory_of.push_back(stage);
  }
  return separate;
}

double SharedProcessors::running_in(int group, const std::vector<bool>& running) const {
  double count = 0;
  for (std::size_t stage = 0; stage < running.size(); ++stage)
    count += group_of[stage] == group && running[stage];
  return count;
}

// Returns how busy the other processors of a host are while one of its stages runs, from 0 (all
// idle) to 1 (all busy). Stages with the same `memory` are on one host. Processors that no stage
// can use do not count.
double SharedProcessors::busy_share(int memory, const std::vector<bool>& running) const {
  double busy = 0, most = 0, stages_running = 0, stages = 0;
  for (int group = 0; group < std::ssize(processors); ++group) {
    const auto first = std::ranges::find(group_of, group) - group_of.begin();
    if (memory_of[static_cast<std::size_t>(first)] != memory) continue;
    const auto members = static_cast<double>(std::ranges::count(group_of, group));
    const double of_group = running_in(group, running);
    busy += std::min(of_group, processors[at(group)]);
    most += std::min(members, processors[at(group)]);
    stages_running += of_group, stages += members;
  }
  const double copies = replicas[at(memory)];
  // If all stages run on one processor, they still slow each other down through the caches. So each
  // running stage counts as one busy processor.
  if (copies * most <= 1) busy = stages_running, most = stages;
  return copies * most > 1 ? std::max(0.0, (copies * busy - 1) / (copies * most - 1)) : 0;
}

double SharedProcessors::speed(int stage, const std::vector<bool>& running, double slowdown) const {
  const int group = group_of[at(stage)];
  const double share = std::min(1.0, processors[at(group)] / running_in(group, running));
  return share / (1 + (slowdown - 1) * busy_share(memory_of[at(stage)], running));
}

}  // namespace convoy::app
