// `convoy bench memory`: the time of a training step within less memory, next to what others do.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_memory(CLI::App& bench);

}  // namespace convoy::app
