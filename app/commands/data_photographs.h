// `convoy data photographs`: writes a folder of synthetic JPEG files whose decoding takes as long
// as that of photographs.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_data_photographs(CLI::App& data_command);

}  // namespace convoy::app
