// `convoy bench decode`: measures how many images per second one core decodes, by ImageDecoder and
// by libjpeg-turbo alone.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_decode(CLI::App& bench);

}  // namespace convoy::app
