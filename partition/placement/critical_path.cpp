#include "partition/placement/critical_path.h"

#include <algorithm>

namespace convoy::partition {
namespace {

// Follows a chain of transfers that waited for each other, backwards from this edge. Returns the
// edge of the first transfer in the chain, which did not wait.
EdgeIndex first_of_waiting_transfers(const ContendedTimes& times, EdgeIndex edge) {
  while (times.waited_for(edge) != kNone) edge = times.waited_for(edge);
  return edge;
}

// Returns the producer whose end determines the start of the node; kNone if there is none.
NodeIndex delaying_producer(const ScheduleState& state, NodeIndex node) {
  const DeviceIndex home = state.device_of(node);
  const ContendedTimes* times = state.contended();
  for (const ScheduleState::InEdge& in : state.in_edges(node)) {
    if (times == nullptr || state.device_of(in.producer) == home) {
      if (state.arrival(in, home) == state.start(node)) return in.producer;
    } else if (times->arrival(in.edge) == state.start(node)) {
      return state.cost().graph().source(first_of_waiting_transfers(*times, in.edge));
    }
  }
  return kNone;
}

// Appends both end nodes of each transfer for which an input of the node waited, from the last
// transfer to the first.
void append_waiting_transfers(const ScheduleState& state, NodeIndex node, std::vector<NodeIndex>& path) {
  const TaskGraph& graph = state.cost().graph();
  const ContendedTimes& times = *state.contended();
  for (const ScheduleState::InEdge& in : state.in_edges(node)) {
    if (state.device_of(in.producer) == state.device_of(node) || times.arrival(in.edge) != state.start(node))
      continue;
    for (EdgeIndex edge = times.waited_for(in.edge); edge != kNone; edge = times.waited_for(edge))
      path.push_back(graph.target(edge)), path.push_back(graph.source(edge));
    return;
  }
}

}  // namespace

void find_critical_path(const ScheduleState& state, std::vector<NodeIndex>& path, bool producers_first) {
  path.clear();
  NodeIndex node = kNone;
  for (const std::vector<NodeIndex>& order : state.orders())
    if (!order.empty() && (node == kNone || state.finish(order.back()) > state.finish(node)))
      node = order.back();
  while (node != kNone) {
    path.push_back(node);
    NodeIndex before = state.previous_on_device(node);
    if (before != kNone && state.finish(before) != state.start(node)) before = kNone;
    const NodeIndex producer = producers_first || before == kNone ? delaying_producer(state, node) : kNone;
    if (state.contended() != nullptr && producer != kNone) append_waiting_transfers(state, node, path);
    node = producer != kNone ? producer : before;
  }
  std::reverse(path.begin(), path.end());
}

}  // namespace convoy::partition
