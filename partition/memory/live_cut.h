// Computes memory that every order of the nodes needs. While a node runs, all its ancestors have
// ended and none of its descendants has begun. So every tensor that goes from an ancestor to a
// descendant is in the memory of some device. In a training step, the loss is such a node, and the
// tensors are the activations that backward needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

struct LiveCut {
  // The cut is at the time at which this node runs. kNone if no node has both ancestors and
  // descendants.
  NodeIndex node = kNone;
  Bytes bytes = 0;  // bytes that are live while `node` runs, without resident bytes
  // For each node, how many bytes of its output are live while LiveCut::node runs.
  std::vector<Bytes> kept;
};

// Examines several nodes and returns the LiveCut with the most bytes. The nodes are those with the
// most live bytes in one topological order, and some others spread over this order.
LiveCut find_live_cut(const CostModel& cost);

// Returns a one-line proof that the resident bytes and LiveCut::bytes exceed the memory of all
// devices together. Returns nothing if they do not.
std::optional<std::string> live_certificate(const CostModel& cost, const LiveCut& cut);

// Spreads the resident bytes and the bytes of LiveCut::kept over the devices in proportion to their
// memory limits. Each device gets consecutive nodes of an order that keeps layers together. Nodes
// without such bytes go to the device that holds most of their inputs.
Placement place_by_memory(const CostModel& cost, const Units& units, const LiveCut& cut);

}  // namespace convoy::partition
