// `convoy bench memory`: measures training steps within memory limits, and compares Convoy's plans
// with other methods of saving memory.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_memory(CLI::App& bench);

}  // namespace convoy::app
