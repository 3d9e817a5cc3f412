// `convoy bench conv`: the convolutions of a network on the GPU, every engine's plans checked and timed beside cuDNN.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_conv(CLI::App& bench);

}  // namespace convoy::app
