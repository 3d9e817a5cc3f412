// The version, libraries and settings of this build, for --version, info --build and manifests.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

const char* convoy_version();  // "0.1.0"
const char* git_hash();        // twelve digits, followed by "-dirty" if the tree differed; or "unknown"

// Pairs of name and version. Most versions are those of the library that is loaded.
std::vector<std::pair<std::string, std::string>> library_versions();

// Compiler, build type and so on: "compiler" -> "GCC 12.2.0".
std::vector<std::pair<std::string, std::string>> build_settings();

}  // namespace convoy::app
