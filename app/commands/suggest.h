// The names nearest to one that nobody knows, for "did you mean" messages.
#pragma once

#include <string>
#include <vector>

namespace convoy::app {

// At most three of `candidates`, the nearest by edit distance (Levenshtein 1966) first; none that has little in common.
std::vector<std::string> suggest(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace convoy::app
