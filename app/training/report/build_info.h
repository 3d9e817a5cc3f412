// Returns the version, libraries and settings of this build, for --version, info --build and
// manifests.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

const char* convoy_version();  // for example "0.1.0"
// Returns twelve digits of the commit's hash, followed by "-dirty" if the work tree had changes.
// Returns "unknown" if the build was not made from a git repository.
const char* git_hash();

// Returns pairs of name and version. Most versions are those of the libraries that are loaded at
// run time.
std::vector<std::pair<std::string, std::string>> library_versions();

// Returns compiler, build type and so on, for example "compiler" and "GCC 12.2.0".
std::vector<std::pair<std::string, std::string>> build_settings();

}  // namespace convoy::app
