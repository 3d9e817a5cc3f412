// `convoy bench concurrency`: a training step by every way of running its operations side by side.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_concurrency(CLI::App& bench);

}  // namespace convoy::app
