// Returns the version, libraries and settings of this build, for --version, info --build and
// manifests.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

const char* convoy_version();  // for example "0.1.0"
// Returns twelve digits of the commit's hash, with "-dirty" at the end if the tree had changes; or
// "unknown".
const char* git_hash();

// Returns pairs of name and version. Most versions are those of the libraries that are loaded at
// run time.
std::vector<std::pair<std::string, std::string>> library_versions();

// Returns compiler, build type and so on, for example "compiler" and "GCC 12.2.0".
std::vector<std::pair<std::string, std::string>> build_settings();

}  // namespace convoy::app
