// `convoy bench loader`: measures how many images per second the loader delivers if nothing else
// runs.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_loader(CLI::App& bench);

}  // namespace convoy::app
