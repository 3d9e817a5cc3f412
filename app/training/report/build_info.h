// The version, libraries and settings of this build. `convoy --version`, `convoy info --build` and
// manifest.json show them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy::app {

const char* convoy_version();  // for example "0.1.0"
// Returns twelve digits of the commit's hash, followed by "-dirty" if the work tree had changes.
// Returns "unknown" if the build was not made from a git repository.
const char* git_hash();

// Returns pairs of a library's name and version, in most cases of the library loaded at run time.
std::vector<std::pair<std::string, std::string>> library_versions();

// Returns pairs of a setting and its value, for example "compiler" and "GCC 12.2.0".
std::vector<std::pair<std::string, std::string>> build_settings();

}  // namespace convoy::app
