// `convoy bench decode`: measures the decoding rate of a core, through ImageDecoder and by
// libjpeg-turbo alone.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_decode(CLI::App& bench);

}  // namespace convoy::app
