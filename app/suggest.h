// Finds names that are similar to a wrong name of a flag, subcommand, key, value or model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// Returns the optimal string alignment distance of two words: the number of insertions, deletions,
// replacements and swaps of neighbours that turn one word into the other. Ignores case.
int edit_distance(std::string_view a, std::string_view b);

// Returns at most three candidates that are similar to `name`, the most similar first. A candidate
// is similar if it begins with `name` (of three letters or more), or if its edit distance to `name`
// is at most 4 and at most about a third of the letters of `name`.
std::vector<std::string> suggest(std::string_view name, const std::vector<std::string>& candidates);

// Returns the end of a message, such as "; did you mean 'resnet18' or 'resnet34'?". Returns an
// empty text if no candidate is similar.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace convoy::app
