// `convoy bench step`: measures the rate of a training step on synthetic input, and the time of its
// operations.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_step(CLI::App& bench);

}  // namespace convoy::app
