// What no order of the nodes can avoid to hold: while a node runs, everything before it has ended and nothing behind it has
// begun, so every tensor that crosses from the one to the other is somewhere in memory. In a training step such a node
// is the loss, and what crosses are the activations that backward needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/placement/units.h"
#include "partition/simulation/placement.h"

namespace convoy::partition {

struct LiveCut {
  NodeIndex node = kNone;   // kNone: no node has anything before it and behind it
  Bytes bytes = 0;          // live while it runs, resident bytes left out
  std::vector<Bytes> kept;  // by node: of it, its output
};

// The largest found: at the nodes of an order at which most is live, and at some spread over it.
LiveCut find_live_cut(const CostModel& cost);

// A proof, in one line, that a graph's resident and inevitably live bytes exceed all devices together.
std::optional<std::string> live_certificate(const CostModel& cost, const LiveCut& cut);

// Spreads the bytes of the cut and the resident ones over the devices, by their limits, in stretches of an order that keeps
// layers together; what is behind the cut goes where most of what it reads is.
Placement place_by_memory(const CostModel& cost, const Units& units, const LiveCut& cut);

}  // namespace convoy::partition
