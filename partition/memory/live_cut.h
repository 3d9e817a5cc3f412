// The memory that every order of the nodes needs. While a node runs, all its ancestors have ended
// and none of its descendants has begun. So every tensor from an ancestor to a descendant is in
// some device's memory. In a training step such a node is the loss, and the tensors are the
// activations that backward needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

struct LiveCut {
  // The node of the cut; kNone if no node has both ancestors and descendants.
  NodeIndex node = kNone;
  Bytes bytes = 0;          // bytes that are live while `node` runs, without resident bytes
  std::vector<Bytes> kept;  // one element per node: bytes of its output that are live while `node` runs
};

// Returns the largest cut found. Tries the nodes at which most bytes are live in one order, and
// some nodes spread over that order.
LiveCut find_live_cut(const CostModel& cost);

// Returns a proof, in one line, that the resident bytes and the cut's bytes exceed the memory of
// all devices together; nothing if they do not.
std::optional<std::string> live_certificate(const CostModel& cost, const LiveCut& cut);

// Spreads the bytes of the cut and the resident bytes over the devices, in proportion to their
// limits. Each device gets a stretch of an order that keeps layers together. A node after the cut
// goes to the device with most of its inputs.
Placement place_by_memory(const CostModel& cost, const Units& units, const LiveCut& cut);

}  // namespace convoy::partition
