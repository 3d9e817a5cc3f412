// `convoy bench collectives`: measures the time and the bus bandwidth of Convoy's collectives, and
// compares them with the calls of MPI or NCCL.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_collectives(CLI::App& bench);

}  // namespace convoy::app
