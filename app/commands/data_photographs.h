// `convoy data photographs`: makes a folder of JPEG files that take as long to decode as
// photographs.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_data_photographs(CLI::App& data_command);

}  // namespace convoy::app
