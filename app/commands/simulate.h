// `convoy simulate`: judges a given placement of a task graph.
#pragma once

#include "app/commands/graph_and_machine.h"
#include "app/commands/partition.h"

namespace convoy::app {

// Reads the graph and the placement, whose `devices` is the machine's size, and simulates it.
// Throws std::runtime_error if a device would exceed its memory limit.
void run_simulate(const GraphAndMachineFlags& input, const std::string& placement_file, bool ignore_order,
                  const OutputFlags& output);

}  // namespace convoy::app
