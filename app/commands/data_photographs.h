// `convoy data photographs`: a folder of JPEG files that cost what photographs cost.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_data_photographs(CLI::App& data_command);

}  // namespace convoy::app
