// `convoy simulate`: judge any placement.
#pragma once

#include "app/commands/graph_and_machine.h"
#include "app/commands/partition.h"

namespace convoy::app {

// Reads the graph and the placement (its `devices` is the machine's size), simulates, and throws std::runtime_error when a
// device would exceed its limit.
void run_simulate(const GraphAndMachineFlags& input, const std::string& placement_file, bool ignore_order,
                  const OutputFlags& output);

}  // namespace convoy::app
