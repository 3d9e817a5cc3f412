// `convoy bench collectives`: time and bus bandwidth of the ranks' collectives next to the
// library's own calls.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_collectives(CLI::App& bench);

}  // namespace convoy::app
