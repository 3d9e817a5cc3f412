// `convoy bench concurrency`: times a training step with different schedules, which let its
// operations run one by one or several at the same time.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_concurrency(CLI::App& bench);

}  // namespace convoy::app
