// `convoy bench step`: the rate of a training step on synthetic input, and where its time goes.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_step(CLI::App& bench);

}  // namespace convoy::app
