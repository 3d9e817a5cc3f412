// `convoy bench loader`: measures how many images a second the loader delivers on its own.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_loader(CLI::App& bench);

}  // namespace convoy::app
