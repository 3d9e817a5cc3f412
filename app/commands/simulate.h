// `convoy simulate`: simulates a given placement of a task graph.
#pragma once

#include "app/commands/graph_and_machine.h"
#include "app/commands/partition.h"

namespace convoy::app {

// Reads the graph and the placement, simulates it and prints the result. The machine has as many
// devices as the field `devices` of the placement says. Throws std::runtime_error if a device would
// exceed its memory limit.
void run_simulate(const GraphAndMachineFlags& input, const std::string& placement_file, bool ignore_order,
                  const OutputFlags& output);

}  // namespace convoy::app
