// `convoy bench conv`: checks and times Convoy's kernels for the convolutions of a network, and
// compares them with cuDNN.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_conv(CLI::App& bench);

}  // namespace convoy::app
