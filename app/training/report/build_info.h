// What this program was built from: for `convoy --version`, `convoy info --build` and every run's manifest.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

const char* convoy_version();  // "0.1.0"
const char* git_hash();        // twelve digits, "-dirty" behind them where the tree differed; or "unknown"

// Name and version, most of them asked from the library that is loaded, not from the headers.
std::vector<std::pair<std::string, std::string>> library_versions();

// Compiler, build type and so on: "compiler" -> "GCC 12.2.0".
std::vector<std::pair<std::string, std::string>> build_settings();

}  // namespace convoy::app
