// `convoy bench memory`: measures training steps that keep to a memory limit, and compares Convoy's
// plans with other methods.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_memory(CLI::App& bench);

}  // namespace convoy::app
